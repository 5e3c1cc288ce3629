/** Apps on the fake hypervisor, a coordinator, and proxies in its process, with a clock that the test moves. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineState } from "@hibernaut/domain/machine";
import type { ServiceConfig } from "@hibernaut/domain/service-config";
import type { Machines, Resources, WaitTarget } from "@hibernaut/machines";
import type { Traffic } from "@hibernaut/store";
import { afterEach, beforeEach } from "vitest";
import { newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { connectInProcess, type InProcessProxy } from "../src/connect-in-process.ts";
import { ConnectedProxies } from "../src/connected-proxies.ts";
import type { Lease, LeaseStart, RequestHead } from "../src/contract.ts";
import type { LeaseBroker } from "../src/lease-broker.ts";
import { ProxyCoordinator } from "../src/proxy-coordinator.ts";

export const IDLE_S = 5;
/** Only a fault reaches it. */
const PATIENT_MS = 60_000;

const PASSING = { name: "web", status: "passing" as const, output: "", updated_at: "" };

/** The world of the current test. */
export interface ProxyWorld {
  world: World;
  platform: Resources;
  machines: Machines;
  connected: ConnectedProxies;
  coordinator: ProxyCoordinator;
  proxies: InProcessProxy[];
  /** What the clocks of the coordinator and the proxies show, in milliseconds. */
  now: number;
  /** What requests were told of how their machine woke. */
  wakes: LeaseStart[];
  /** Machines whose connections were dropped. */
  left: string[];
  /** Those of them whose guest had ended. */
  ended: string[];
  unhealthy: Set<string>;
  /** The machine's check has passed, as the platform knows it; `unhealthy` is what proxies know. */
  checkPassed(id: string): void;
  /** What proxies reported to have forwarded. */
  traffic: [id: string, Traffic][];
}

export let w: ProxyWorld;

/** Gives each test of a file a world with the app `shop` and one proxy. */
export function useProxyWorld(): void {
  beforeEach(async () => {
    const world = await newWorld();
    const listeners = new Set<(id: string) => void>();
    const passed = new Set<string>();
    const platform = await startPlatform(world, {
      wrap: (deps) => ({
        ...deps,
        letGo: (id, sleep) => w.connected.letGo(id, sleep),
        checkResults: (id) => (passed.has(id) ? [PASSING] : []),
        subscribeToChecks(listener) {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      }),
    });
    platform.apps.create("shop");
    w = {
      world,
      platform,
      machines: platform.machines,
      checkPassed(id) {
        passed.add(id);
        for (const listener of listeners) listener(id);
      },
      ...{ now: 1_000_000, proxies: [], wakes: [], left: [], ended: [], unhealthy: new Set(), traffic: [] },
      ...coordination(world, platform, false),
    };
    w.proxies.push(newProxy());
    await settled();
  });
  afterEach(async () => {
    for (const proxy of w.proxies) proxy.close();
    await w.coordinator.close();
    await w.platform.close();
    await w.world.dispose();
  });
}

/** Replaces the coordinator by one whose network lets connections outlive a sleep, or not. Existing proxies are left. */
export async function replaceCoordinator({ connectionsSurvive }: { connectionsSurvive: boolean }): Promise<void> {
  await w.coordinator.close();
  Object.assign(w, coordination(w.world, w.platform, connectionsSurvive));
}

function coordination(world: World, platform: Resources, connectionsSurvive: boolean) {
  const connected = new ConnectedProxies();
  const coordinator = new ProxyCoordinator({
    ...platform,
    proxies: connected,
    suffixes: ["localhost"],
    idleCheckIntervalMs: 3_600_000,
    connectionsSurvive,
    onTraffic: (id, traffic) => void w.traffic.push([id, traffic]),
    isHealthy: (id) => !w.unhealthy.has(id),
    isDraining: () => platform.drain.active,
    log: { warn: (fields, message) => void world.logged.push({ fields, message }) },
    now: () => w?.now ?? 0,
  });
  platform.drain.subscribe((draining) => coordinator.drainChanged(draining));
  return { connected, coordinator };
}

export function newProxy(
  limits: { maxHeld?: number; holdTimeoutMs?: number; tlsPort?(): number | undefined } = {},
): InProcessProxy {
  return connectInProcess(w.coordinator, {
    maxHeld: 10_000,
    holdTimeoutMs: PATIENT_MS,
    connectTimeoutMs: 1000,
    onWake: (_app, wake) => void w.wakes.push(wake),
    onLeft: (id, ended) => {
      w.left.push(id);
      if (ended) w.ended.push(id);
    },
    now: () => w.now,
    ...limits,
  });
}

/** Connects another proxy. */
export async function anotherProxy(): Promise<InProcessProxy> {
  const proxy = newProxy();
  w.proxies.push(proxy);
  await settled();
  return proxy;
}

/** Resolves once all loads are reported and all messages between proxies and coordinator have arrived. */
export async function settled(): Promise<void> {
  for (const proxy of w.proxies) await proxy.settled();
  // What the later proxies reported was passed on to the earlier ones.
  for (const proxy of w.proxies) await proxy.settled();
}

export const reach = (id: string, ...targets: WaitTarget[]): Promise<MachineState> =>
  w.machines.wait("shop", id, targets, { timeoutMs: 5000 });
export const state = (id: string): MachineState => w.machines.get("shop", id).record.state;

/** Creates a machine of the app, which is running and known to the proxies. */
export async function machine(
  service: Partial<ServiceConfig> = {},
  more: Partial<MachineConfig> = {},
): Promise<string> {
  const services = [{ internal_port: 8080, autostop: "suspend" as const, idle_timeout: IDLE_S, ...service }];
  const { record } = await w.machines.create("shop", { config: { ...SMALL, services, ...more } });
  await reach(record.id, "running");
  await settled();
  return record.id;
}

/** Puts a machine to sleep by hand. */
export async function asleep(id: string, how: "suspend" | "stop" = "suspend"): Promise<string> {
  w.machines[how]("shop", id);
  await reach(id, how === "suspend" ? "suspended" : "stopped");
  await settled();
  return id;
}

export const request = (more: Partial<RequestHead> = {}): RequestHead => ({
  method: "GET",
  target: "/",
  host: "shop.localhost",
  httpVersion: "1.1",
  fields: [],
  clientAddress: "127.0.0.1",
  secure: false,
  requestId: "r",
  connection: {},
  tried: [],
  ...more,
});

/** Finds a lease at the first proxy. */
export const acquire = (more?: Partial<RequestHead>): Promise<Lease> =>
  acquireAt((w.proxies[0] as InProcessProxy).broker, request(more));

/** Finds a lease as the request path does. What is returned or thrown at once resolves or rejects the promise. */
export async function acquireAt(
  broker: LeaseBroker,
  head: RequestHead = request(),
  signal = new AbortController().signal,
): Promise<Lease> {
  const app = broker.route(head.host);
  return broker.leaseNow(app, head) ?? broker.waitForLease(app, head, signal);
}

/** How many requests of the app wait at the first proxy. */
export const held = (): number | undefined => w.proxies[0]?.broker.held().get("shop");

/** Lets time pass, and the coordinator look for idle machines. */
export async function later(seconds: number): Promise<void> {
  await settled();
  w.now += seconds * 1000;
  await w.coordinator.check();
}
