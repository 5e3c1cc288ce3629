/** Apps on the fake hypervisor, a coordinator, and proxies in its process, with a clock that the test moves. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineState } from "@hibernaut/domain/machine";
import type { ServiceConfig } from "@hibernaut/domain/service-config";
import type { Machines, Resources, WaitTarget } from "@hibernaut/machines";
import type { Traffic } from "@hibernaut/store";
import { afterEach, beforeEach } from "vitest";
import { ChallengeBoard } from "../../certs/src/challenges.ts";
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

/** An app `shop`, its coordinator and, at first, one proxy. */
export class ProxyWorld {
  readonly world: World;
  platform!: Resources;
  connected!: ConnectedProxies;
  coordinator!: ProxyCoordinator;
  /** The challenges of certificate authorities. */
  board!: ChallengeBoard;
  readonly proxies: InProcessProxy[] = [];
  /** What the clocks of the coordinator and the proxies show, in milliseconds. */
  now = 1_000_000;
  /** What requests were told of how their machine woke. */
  readonly wakes: LeaseStart[] = [];
  /** Machines whose connections were dropped. */
  readonly left: string[] = [];
  /** Those of them whose guest had ended. */
  readonly ended: string[] = [];
  readonly unhealthy = new Set<string>();
  /** What proxies reported to have forwarded. */
  readonly traffic: [id: string, Traffic][] = [];
  readonly #passed = new Set<string>();
  readonly #listeners = new Set<(id: string) => void>();

  private constructor(world: World) {
    this.world = world;
  }

  static async open(): Promise<ProxyWorld> {
    const made = new ProxyWorld(await newWorld());
    made.platform = await startPlatform(made.world, {
      wrap: (deps) => ({
        ...deps,
        letGo: (id, sleep) => made.connected.letGo(id, sleep),
        checkResults: (id) => (made.#passed.has(id) ? [PASSING] : []),
        subscribeToChecks(listener) {
          made.#listeners.add(listener);
          return () => made.#listeners.delete(listener);
        },
      }),
    });
    made.platform.apps.create("shop");
    made.#coordinate(false);
    await made.anotherProxy();
    return made;
  }

  get machines(): Machines {
    return this.platform.machines;
  }

  /** The machine's check has passed, as the platform knows it; `unhealthy` is what proxies know. */
  checkPassed(id: string): void {
    this.#passed.add(id);
    for (const listener of this.#listeners) listener(id);
  }

  /** Replaces the coordinator by one whose network lets connections outlive a sleep. Existing proxies are left. */
  async letConnectionsSurvive(): Promise<void> {
    await this.coordinator.close();
    this.#coordinate(true);
  }

  #coordinate(connectionsSurvive: boolean): void {
    const { platform, world } = this;
    const [connected, board] = [new ConnectedProxies(), new ChallengeBoard()];
    const coordinator = new ProxyCoordinator({
      ...platform,
      proxies: connected,
      suffixes: ["localhost"],
      networkOf: (app) => platform.apps.networkOf(app),
      idleCheckIntervalMs: 3_600_000,
      connectionsSurvive,
      onTraffic: (id, traffic) => void this.traffic.push([id, traffic]),
      isHealthy: (id) => !this.unhealthy.has(id),
      isDraining: () => platform.drain.active,
      challenges: board,
      log: { warn: (fields, message) => void world.logged.push({ fields, message }) },
      now: () => this.now,
    });
    platform.drain.subscribe((draining) => coordinator.drainChanged(draining));
    board.subscribe(() => coordinator.challengesChanged());
    Object.assign(this, { connected, coordinator, board });
  }

  /** Connects another proxy. */
  async anotherProxy(
    limits: { maxHeld?: number; holdTimeoutMs?: number; tlsPort?(): number | undefined; forVisitors?: boolean } = {},
  ): Promise<InProcessProxy> {
    const proxy = connectInProcess(this.coordinator, {
      ...{ maxHeld: 10_000, holdTimeoutMs: PATIENT_MS, connectTimeoutMs: 1000 },
      onWake: (_app, wake) => void this.wakes.push(wake),
      onLeft: (id, ended) => {
        this.left.push(id);
        if (ended) this.ended.push(id);
      },
      now: () => this.now,
      ...limits,
    });
    this.proxies.push(proxy);
    await this.settled();
    return proxy;
  }

  /** Resolves once all loads are reported and all messages between proxies and coordinator have arrived. */
  async settled(): Promise<void> {
    for (const proxy of this.proxies) await proxy.settled();
    // What the later proxies reported was passed on to the earlier ones.
    for (const proxy of this.proxies) await proxy.settled();
  }

  async reach(id: string, ...targets: WaitTarget[]): Promise<MachineState> {
    return (await this.machines.wait("shop", id, targets, { timeoutMs: 5000 })).state;
  }

  state(id: string): MachineState {
    return this.machines.get("shop", id).record.state;
  }

  /** Creates a machine of the app, which is running and known to the proxies. */
  async machine(
    service: Partial<ServiceConfig> = {},
    more: Partial<MachineConfig> = {},
    name?: string,
  ): Promise<string> {
    const services = [{ internal_port: 8080, autostop: "suspend" as const, idle_timeout: IDLE_S, ...service }];
    const config = { ...SMALL, services, ...more };
    const { record } = await this.machines.create("shop", { config, ...(name !== undefined && { name }) });
    await this.reach(record.id, "running");
    await this.settled();
    return record.id;
  }

  /** Puts a machine to sleep by hand. */
  async asleep(id: string, how: "suspend" | "stop" = "suspend"): Promise<string> {
    this.machines[how]("shop", id);
    await this.reach(id, how === "suspend" ? "suspended" : "stopped");
    await this.settled();
    return id;
  }

  /** The first proxy's. */
  get broker(): LeaseBroker {
    return (this.proxies[0] as InProcessProxy).broker;
  }

  /** Finds a lease at the first proxy. */
  acquire(more?: Partial<RequestHead>): Promise<Lease> {
    return acquireAt(this.broker, request(more));
  }

  /** How many requests of the app wait at the first proxy. */
  held(): number | undefined {
    return this.proxies[0]?.broker.held().get("shop");
  }

  /** Lets time pass, and the coordinator look for idle machines. */
  async later(seconds: number): Promise<void> {
    await this.settled();
    this.now += seconds * 1000;
    await this.coordinator.check();
  }

  async close(): Promise<void> {
    for (const proxy of this.proxies) proxy.close();
    await this.coordinator.close();
    await this.platform.close();
    await this.world.dispose();
  }
}

/** The world of the current test. */
export let w: ProxyWorld;

/** Gives each test of a file a world. */
export function useProxyWorld(): void {
  beforeEach(async () => {
    w = await ProxyWorld.open();
  });
  afterEach(() => w.close());
}

export const request = (more: Partial<RequestHead> = {}): RequestHead => ({
  ...{ method: "GET", target: "/", host: "shop.localhost", httpVersion: "1.1", fields: [] },
  ...{ clientAddress: "127.0.0.1", secure: false, requestId: "r", connection: {}, tried: [] },
  ...more,
});

/** Finds a lease as the request path does. What is returned or thrown at once resolves or rejects the promise. */
export async function acquireAt(
  broker: LeaseBroker,
  head: RequestHead = request(),
  signal = new AbortController().signal,
): Promise<Lease> {
  const app = broker.route(head.host);
  return broker.leaseNow(app, head) ?? broker.waitForLease(app, head, signal);
}
