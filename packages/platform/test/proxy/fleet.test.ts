/** Waking and sleeping, on a fake hypervisor and a clock that the test moves. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MachineConfig, ServiceConfig } from "../../src/domain/config.ts";
import type { Resources } from "../../src/machines/open.ts";
import type { Machines } from "../../src/machines/resources/machines.ts";
import type { WaitTarget } from "../../src/machines/waiting.ts";
import type { Lease, RequestHead, Wake } from "../../src/proxy/contract.ts";
import type { Fleet } from "../../src/proxy/fleet.ts";
import { ProxyHub } from "../../src/proxy/hub.ts";
import { connectInProcess } from "../../src/proxy/in-process.ts";
import { newWorld, SMALL, startPlatform, type World } from "../helpers/fake-world.ts";

const IDLE_S = 5;
const PATIENT_MS = 60_000;

let world: World;
let platform: Resources;
let machines: Machines;
let hub: ProxyHub;
let proxies: { fleet: Fleet; close(): void }[];
let now: number;
let wakes: Wake[];
let left: string[];
let unhealthy: Set<string>;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
  ({ machines } = platform);
  platform.apps.create("shop");
  now = 1_000_000;
  wakes = [];
  left = [];
  unhealthy = new Set();
  hub = newHub(false);
  proxies = [newProxy()];
  await turn();
});
afterEach(async () => {
  for (const proxy of proxies) proxy.close();
  await hub.close();
  await platform.close();
  await world.dispose();
});

function newHub(connectionsSurvive: boolean): ProxyHub {
  return new ProxyHub({
    machines,
    hostnames: platform.hostnames,
    commands: platform.commands,
    suffixes: ["localhost"],
    idleCheckIntervalMs: 3_600_000,
    connectionsSurvive,
    isHealthy: (id) => !unhealthy.has(id),
    log: { warn: (fields, message) => void world.logged.push({ fields, message }) },
    now: () => now,
  });
}

function newProxy(limits: { maxHeld?: number; holdTimeoutMs?: number } = {}) {
  return connectInProcess(hub, {
    maxHeld: 10_000,
    holdTimeoutMs: PATIENT_MS,
    connectTimeoutMs: 1000,
    onWake: (_app, wake) => void wakes.push(wake),
    onLeft: (id) => void left.push(id),
    now: () => now,
    ...limits,
  });
}

/** Lets messages between proxy and control plane arrive. */
const turn = () => new Promise((resolve) => setTimeout(resolve, 30));
const reach = (id: string, ...targets: WaitTarget[]) => machines.wait("shop", id, targets, { timeoutMs: 5000 });
const state = (id: string) => machines.get("shop", id).record.state;

async function machine(service: Partial<ServiceConfig> = {}, more: Partial<MachineConfig> = {}): Promise<string> {
  const services = [{ internal_port: 8080, autostop: "suspend" as const, idle_timeout: IDLE_S, ...service }];
  const { record } = await machines.create("shop", { config: { ...SMALL, services, ...more } });
  await reach(record.id, "running");
  await turn();
  return record.id;
}

async function asleep(id: string, how: "suspend" | "stop" = "suspend"): Promise<string> {
  machines[how]("shop", id);
  await reach(id, how === "suspend" ? "suspended" : "stopped");
  await turn();
  return id;
}

const request = (more: Partial<RequestHead> = {}): RequestHead => ({
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
const acquire = (more?: Partial<RequestHead>): Promise<Lease> =>
  acquireAt((proxies[0] as { fleet: Fleet }).fleet, request(more));
/** What is given or thrown at once is given or rejected with a promise. */
const acquireAt = async (fleet: Fleet, head: RequestHead, signal = new AbortController().signal): Promise<Lease> =>
  fleet.acquire(head, () => signal);

/** Time passes, and the control plane looks who is idle. */
async function later(seconds: number): Promise<void> {
  await turn();
  now += seconds * 1000;
  await hub.check();
}

describe("waking", () => {
  test("a request to a running machine goes there at once", async () => {
    const id = await machine();
    const lease = await acquire();
    expect(lease).toMatchObject({
      machineId: id,
      appName: "shop",
      port: 8080,
      wake: { kind: "running", durationMs: 0 },
    });
    lease.release({});
  });

  test("a request to a suspended machine resumes it, and is told so", async () => {
    const id = await asleep(await machine());
    const waiting = acquire();
    now += 212;
    const lease = await waiting;
    expect(lease.wake).toEqual({ kind: "resume", durationMs: 212 });
    expect(wakes).toEqual([lease.wake]);
    expect(machines.get("shop", id).record.lastBoot?.kind).toBe("resume");
    lease.release({ status: 200 });
  });

  test("200 requests to one sleeping machine are one resume, and all are served", async () => {
    const id = await asleep(await machine({ concurrency: { soft_limit: 1000 } }));
    const leases = await Promise.all(Array.from({ length: 200 }, () => acquire()));
    expect(new Set(leases.map((lease) => lease.machineId))).toEqual(new Set([id]));
    expect(world.host.restored).toHaveLength(1);
    const starts = machines
      .events("shop", id, 100)
      .filter(({ type, from }) => type === "start" && from === "suspended");
    expect(starts).toHaveLength(1);
    for (const lease of leases) lease.release({});
  });

  test("a suspended machine is started before a stopped one", async () => {
    const stopped = await asleep(await machine(), "stop");
    const suspended = await asleep(await machine());
    expect((await acquire()).machineId).toBe(suspended);
    expect(state(stopped)).toBe("stopped");
  });

  test("a stopped machine cold starts", async () => {
    await asleep(await machine(), "stop");
    expect((await acquire()).wake.kind).toBe("cold");
  });

  test("a failed resume becomes a cold start inside the same hold", async () => {
    await asleep(await machine());
    world.host.faults.restore = new Error("the snapshot cannot be loaded");
    expect((await acquire()).wake.kind).toBe("cold");
  });

  test("a request that arrives while its machine is being suspended turns that around", async () => {
    const id = await machine();
    const held = Promise.withResolvers<void>();
    world.host.hold.capture = held.promise;
    machines.suspend("shop", id);
    await turn();
    now += 100;
    const waiting = acquire();
    await turn();
    held.resolve();
    // The same guest went on: it was not started.
    expect(await waiting).toMatchObject({ machineId: id, wake: { kind: "running" } });
    const types = machines.events("shop", id, 3).map(({ type }) => type);
    expect(types[0]).toBe("capture_cancelled");
  });

  test("all at the soft limit: the request is served, and another machine is woken for the next", async () => {
    const first = await machine({ concurrency: { soft_limit: 1, hard_limit: 2 } });
    const second = await asleep(await machine({ concurrency: { soft_limit: 1, hard_limit: 2 } }));
    expect((await acquire()).machineId).toBe(first);
    expect(state(second)).toBe("suspended");
    expect((await acquire()).machineId).toBe(first);
    await reach(second, "running");
    await turn();
    expect((await acquire()).machineId).toBe(second);
  });

  test("never over the hard limit: the next one waits for room", async () => {
    const id = await machine({ concurrency: { soft_limit: 1, hard_limit: 1 } });
    const first = await acquire();
    const waiting = acquire();
    await turn();
    expect(hub.load(id)).toBe(1);
    expect(proxies[0]?.fleet.held().get("shop")).toBe(1);
    first.release({});
    expect((await waiting).machineId).toBe(id);
  });

  test("connections count once, however many requests they carry", async () => {
    const id = await machine({ concurrency: { type: "connections", soft_limit: 1, hard_limit: 1 } });
    const connection = {};
    const leases = [await acquire({ connection })];
    const other = acquire();
    await turn();
    expect(hub.load(id)).toBe(1);
    expect(proxies[0]?.fleet.held().get("shop")).toBe(1);
    leases[0]?.release({});
    await other;
  });

  test.each([
    ["unknown.localhost", 404, "unknown_host"],
    ["elsewhere.example", 404, "unknown_host"],
  ])("%s is nobody's: %i %s", async (host, status, code) => {
    await machine();
    await expect(acquire({ host })).rejects.toMatchObject({ status, code });
  });

  test("without autostart a sleeping machine stays asleep: 503", async () => {
    await asleep(await machine({ autostop: "off", autostart: false }));
    await expect(acquire()).rejects.toMatchObject({ status: 503, code: "not_running" });
  });

  test("a machine that cannot start is told as that, and tried again only after a rest", async () => {
    const id = await asleep(await machine(), "stop");
    world.host.faults.boot = new Error("no room for its memory");
    await expect(acquire()).rejects.toMatchObject({ status: 503, code: "machine_failed", retryAfterS: 10 });
    await expect(acquire()).rejects.toMatchObject({ message: expect.stringMatching(/no room for its memory/) });
    expect(state(id)).toBe("failed");
    now += 10_000;
    expect((await acquire()).wake.kind).toBe("cold");
  });

  describe("of an app that crashes at its start", () => {
    const crashing = async (restart: MachineConfig["restart"] = {}) => {
      const id = await asleep(await machine({}, { restart }), "stop");
      world.host.crashing.add(id);
      return id;
    };

    test("a request that waited is told as soon as it has crashed, the next at once, until it comes up", async () => {
      const id = await crashing();
      const told = { status: 503, code: "app_crashed", message: expect.stringMatching(/the app exited with code 1/) };
      await expect(acquire()).rejects.toMatchObject(told);
      await reach(id, "restarting");
      await expect(acquire()).rejects.toMatchObject({ ...told, retryAfterS: 1 });
      expect(state(id)).toBe("restarting");
      expect(machines.events("shop", id, 100).filter(({ type }) => type === "start")).toHaveLength(1 + 1);
      world.host.crashing.clear();
      await reach(id, "running");
      await turn();
      expect((await acquire()).machineId).toBe(id);
    });

    test("once it was given up a request starts it again, after a rest", async () => {
      const id = await crashing({ policy: "no" });
      await expect(acquire()).rejects.toMatchObject({ status: 503, code: "app_crashed" });
      await reach(id, "stopped");
      await turn();
      await expect(acquire()).rejects.toMatchObject({ status: 503, code: "app_crashed", retryAfterS: 10 });
      world.host.crashing.clear();
      now += 10_000;
      expect((await acquire()).wake.kind).toBe("cold");
    });

    test("another machine of the app takes its requests", async () => {
      await crashing();
      const id = await machine();
      expect((await acquire()).machineId).toBe(id);
    });
  });

  test("an app that ran and then failed once is waited for", async () => {
    const id = await machine();
    world.host.guest(id)?.exit(1);
    await reach(id, "restarting");
    await turn();
    expect((await acquire()).machineId).toBe(id);
  });

  test("an app that listens on loopback only is told as that at once, until it listens elsewhere", async () => {
    const { record } = await machines.create("shop", { config: SMALL, skipLaunch: true });
    world.host.listening.set(record.id, [{ address: "127.0.0.1", port: 8080 }]);
    machines.start("shop", record.id);
    const message = expect.stringMatching(/listens on 127\.0\.0\.1:8080 only/);
    await expect(acquire()).rejects.toMatchObject({ status: 502, code: "upstream_unreachable", message });
    await reach(record.id, "running");
    world.host.guest(record.id)?.listen();
    await expect.poll(() => machines.get("shop", record.id).record.unreachable).toBeNull();
    await turn();
    expect((await acquire()).machineId).toBe(record.id);
  });

  test("a full line refuses the next with 503, a long wait ends with 504, a client that leaves frees its place", async () => {
    proxies.push(newProxy({ maxHeld: 2, holdTimeoutMs: 300 }));
    const { fleet } = proxies[1] as { fleet: Fleet };
    const id = await asleep(await machine());
    const held = Promise.withResolvers<void>();
    const boot = machines.start.bind(machines);
    machines.start = () => ({ previousState: "suspended" }); // the wake is lost on its way
    const leaving = new AbortController();
    const [first, second] = [
      acquireAt(fleet, request(), leaving.signal),
      acquireAt(fleet, request(), AbortSignal.timeout(9e6)),
    ];
    await expect(acquireAt(fleet, request(), AbortSignal.timeout(9e6))).rejects.toMatchObject({
      status: 503,
      code: "too_many_held",
      retryAfterS: 1,
    });
    leaving.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    await expect(second).rejects.toMatchObject({ status: 504, code: "wake_timeout" });
    expect(fleet.held().get("shop") ?? 0).toBe(0);
    held.resolve();
    machines.start = boot;
    expect(state(id)).toBe("suspended");
  });
});

describe("open requests and what others do to their machine", () => {
  test("a suspend that somebody asks for while a request is open is turned around: the request needs the machine", async () => {
    const id = await machine();
    const lease = await acquire();
    machines.suspend("shop", id);
    await turn();
    await reach(id, "running");
    expect(machines.events("shop", id, 1)[0]?.type).toBe("capture_cancelled");
    lease.release({});
  });

  test("an upgraded connection lets its machine sleep where connections survive, and wakes it when its client speaks", async () => {
    await hub.close();
    hub = newHub(true);
    proxies.push(newProxy());
    await turn();
    const { fleet } = proxies.at(-1) as { fleet: Fleet };
    const id = await machine();
    const lease = await acquireAt(fleet, request());
    lease.upgraded?.();
    await asleep(id);
    expect(state(id)).toBe("suspended");
    lease.wanted?.();
    await reach(id, "running");
    lease.release({});
  });

  test("where connections do not survive, an upgraded one keeps its machine awake", async () => {
    const id = await machine();
    const lease = await acquire();
    lease.upgraded?.();
    machines.suspend("shop", id);
    await turn();
    await reach(id, "running");
    lease.release({});
  });

  test("what is stopped or updated finishes its requests first, for as long as it may", async () => {
    const id = await machine();
    const lease = await acquire();
    await turn();
    const finishing = hub.finished(id, 5000);
    expect(await Promise.race([finishing.then(() => "finished"), turn().then(() => "waiting")])).toBe("waiting");
    lease.release({});
    await finishing;
    const endless = await acquire();
    endless.upgraded?.();
    await turn();
    await hub.finished(id, 5000); // tunnels are not waited for
    endless.release({});
  });

  test("a machine whose checks fail takes nothing; a request waits until they pass", async () => {
    const [ill, well] = [await machine(), await machine()];
    unhealthy.add(ill);
    hub.healthChanged(ill);
    await turn();
    for (let i = 0; i < 3; i += 1) expect((await acquire()).machineId).toBe(well);
    unhealthy.add(well);
    hub.healthChanged(well);
    await turn();
    const waiting = acquire();
    await turn();
    expect(proxies[0]?.fleet.held().get("shop")).toBe(1);
    unhealthy.delete(ill);
    hub.healthChanged(ill);
    expect((await waiting).machineId).toBe(ill);
  });
});

describe("sleeping", () => {
  test("a machine sleeps when nothing was open for its idle time, and not before", async () => {
    const id = await machine();
    const lease = await acquire();
    await later(60);
    expect(state(id)).toBe("running");
    lease.release({});
    await later(IDLE_S - 1);
    expect(state(id)).toBe("running");
    await later(1);
    await reach(id, "suspended");
    const event = machines.events("shop", id, 5).find(({ type }) => type === "suspend");
    expect(event?.details).toMatchObject({ by: "proxy", idle_ms: IDLE_S * 1000 });
    expect(left).toContain(id);
  });

  test("with autostop = stop it is stopped; with off it stays", async () => {
    const stops = await machine({ autostop: "stop" });
    await later(IDLE_S);
    await reach(stops, "stopped");
    machines.destroy("shop", stops);
    const stays = await machine({ autostop: "off" });
    await later(3600);
    expect(state(stays)).toBe("running");
  });

  test("one that cannot be suspended is stopped instead, and its event says why", async () => {
    const id = await machine({}, { guest: { memory_mb: 4096 } });
    await later(IDLE_S);
    await reach(id, "stopped");
    const event = machines.events("shop", id, 5).find(({ type }) => type === "stop");
    expect(event?.details.reason).toMatch(/cannot be suspended: memory is 4096 MB/);
  });

  test("all that is too many goes in one pass, down to the minimum", async () => {
    const ids = [];
    for (let i = 0; i < 4; i += 1) ids.push(await machine({ min_machines_running: 1 }));
    await later(IDLE_S);
    await turn();
    expect(ids.filter((id) => state(id) === "running")).toHaveLength(1);
    await later(3600);
    expect(ids.filter((id) => state(id) === "running")).toHaveLength(1);
  });

  test("an app that asked to be kept awake is, and no longer than it asked", async () => {
    const id = await machine();
    platform.guestApi.keepAwake(id, 3600, "encoding");
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    platform.guestApi.keepAwake(id, 0, "");
    await hub.check();
    await reach(id, "suspended");
  });

  test("a command that runs in it keeps a machine awake until it ends", async () => {
    const id = await machine();
    const command = platform.commands.run("shop", id, { args: ["cat"], input: true });
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    command.stdin.end();
    await command.exit;
    await hub.check();
    await reach(id, "suspended");
  });

  test("what another proxy has open counts", async () => {
    const id = await machine();
    proxies.push(newProxy());
    await turn();
    const lease = await acquireAt((proxies[1] as { fleet: Fleet }).fleet, request());
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    expect(hub.load(id)).toBe(1);
    lease.release({});
    await later(IDLE_S);
    await reach(id, "suspended");
  });

  test("a request between the question and the sleep is not lost: the machine stays, or comes back for it", async () => {
    const id = await machine();
    await turn();
    now += IDLE_S * 1000;
    const checking = hub.check();
    const lease = await acquire();
    await checking;
    expect(lease.machineId).toBe(id);
    await reach(id, "running");
    lease.release({});
  });

  test("a proxy that does not answer is taken to need the machine", async () => {
    const id = await machine();
    const silent = hub.connect(() => {});
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    silent.close();
    await later(IDLE_S);
    await reach(id, "suspended");
  });

  test("a proxy that lost its connection may come back with requests open: its machines are left alone a little", async () => {
    const id = await machine();
    proxies.push(newProxy());
    await turn();
    const lost = proxies.pop() as { fleet: Fleet; close(): void };
    await acquireAt(lost.fleet, request());
    await turn();
    lost.close();
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    await later(5);
    await reach(id, "suspended");
  });

  test("without any proxy nobody knows what is open, and nothing sleeps", async () => {
    const id = await machine();
    for (const proxy of proxies.splice(0)) proxy.close();
    await later(3600);
    expect(state(id)).toBe("running");
  });
});
