/** The platform is drained before its host goes down, and what ran is there again afterwards. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FakeHypervisor } from "../../hypervisor/src/fake/index.ts";
import {
  type FakePlatform,
  newWorld,
  type PlatformParts,
  SMALL,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import type { WaitTarget } from "../src/waiting.ts";

/** Only a fault reaches it. */
const PATIENT_MS = 10_000;
/** Too large to be suspended. */
const LARGE = { ...SMALL, guest: { memory_mb: 4096 } };

let world: World;
let platform: FakePlatform;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
  platform.apps.create("shop");
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const record = (id: string) => platform.machines.get("shop", id).record;
const reach = (id: string, ...targets: WaitTarget[]) =>
  platform.machines.wait("shop", id, targets, { timeoutMs: PATIENT_MS });
const nonceOf = (id: string) => world.host.guest(id)?.request()?.nonce;
const events = (id: string, type: string) =>
  platform.machines.events("shop", id, 100).filter((event) => event.type === type);

async function machine(config = SMALL): Promise<string> {
  const made = await platform.machines.create("shop", { config });
  await reach(made.record.id, "running");
  return made.record.id;
}

/** Waits until nothing is left to do. */
async function drained(): Promise<void> {
  await vi.waitFor(() => expect(platform.drain.get()?.drain.completedAt).toEqual(expect.any(String)), PATIENT_MS);
}

const results = () => Object.fromEntries(platform.drain.get()?.machines.map(({ id, result }) => [id, result]) ?? []);

/** Ends the platform, and starts the next one. */
async function restart(parts: PlatformParts = {}): Promise<void> {
  await platform.close();
  platform = await startPlatform(world, parts);
}

/** The same, and everything that ran on the host is gone. */
async function reboot(parts: PlatformParts = {}): Promise<void> {
  await platform.close();
  for (const { ref } of world.host.processes.values()) world.host.end(ref);
  world.bootId = "boot-2";
  platform = await startPlatform(world, parts);
}

describe("a reboot", () => {
  test("costs no memory: what ran before resumes, and what slept sleeps on", async () => {
    const ids = await Promise.all([machine(), machine(), machine()]);
    const asleep = await machine();
    platform.machines.suspend("shop", asleep);
    await reach(asleep, "suspended");
    const nonces = ids.map(nonceOf);
    platform.drain.begin({ suspend: true });
    await drained();
    expect(results()).toEqual(Object.fromEntries(ids.map((id) => [id, "suspended"])));
    expect(world.host.processes.size).toBe(0);
    await reboot();
    await Promise.all(ids.map((id) => reach(id, "running")));
    expect(ids.map(nonceOf)).toEqual(nonces);
    expect(ids.map((id) => record(id).lastBoot?.kind)).toEqual(["resume", "resume", "resume"]);
    expect(record(asleep).state).toBe("suspended");
    expect(platform.drain.get(), "a platform that starts again takes work").toBeUndefined();
    expect(events(ids[0] ?? "", "start")[0]?.details).toEqual({ by: "drain" });
  });

  test("leaves machines asleep until something wakes them where the setting says so, and does not come back to it", async () => {
    const id = await machine();
    platform.drain.begin({ suspend: true });
    await drained();
    await reboot({ settings: { resumeOnBoot: "off" } });
    await vi.waitFor(() => expect(record(id).drained).toBe(false), PATIENT_MS);
    await restart();
    expect(record(id).state).toBe("suspended");
  });

  test("whose resumes a second end of the platform interrupts forgets no machine", async () => {
    const ids = await Promise.all([machine(), machine(), machine(), machine()]);
    const nonces = ids.map(nonceOf);
    platform.drain.begin({ suspend: true });
    await drained();
    const held = Promise.withResolvers<void>();
    world.host.hold.restore = held.promise;
    await reboot();
    await vi.waitFor(() => expect(ids.filter((id) => record(id).state === "starting")).toHaveLength(2), PATIENT_MS);
    delete world.host.hold.restore;
    held.resolve();
    await restart();
    await Promise.all(ids.map((id) => reach(id, "running")));
    expect(ids.map(nonceOf)).toEqual(nonces);
    expect(new Set(world.host.restored).size, "no snapshot ran twice").toBe(world.host.restored.length);
  });

  test("that comes too early is a power cut for the machines that were left, and their events say so", async () => {
    const [slow, large] = [await machine(), await machine(LARGE)];
    const held = Promise.withResolvers<void>();
    world.host.hold.capture = held.promise;
    platform.drain.begin({ suspend: true, timeoutS: 1 });
    await drained();
    expect(results()).toEqual({ [slow]: "suspending", [large]: "left" });
    expect(events(slow, "not_suspended")[0]?.details).toEqual({ by: "drain", reason: "the drain ran out of time" });
    expect(events(large, "not_suspended")[0]?.details.reason).toMatch(/^it cannot be suspended: memory is 4096 MB/);
    world.host.faults.capture = new Error("the power is gone");
    held.resolve();
    await reach(slow, "running");
    await reboot();
    await Promise.all([slow, large].map((id) => reach(id, "running")));
    expect(events(large, "lost_restarts")[0]?.details.reason).toMatch(
      /^the VMM ended while the platform was away; a drain had left it running: it cannot be suspended: memory/,
    );
    expect(record(large).lastBoot).toMatchObject({ kind: "cold", reason: "vmm_lost" });
  });
});

describe("while the platform drains", () => {
  test("nothing is started or created, and the refusal says why and when to try again", async () => {
    const [runs, sleeps] = [await machine(), await machine()];
    platform.machines.suspend("shop", sleeps);
    await reach(sleeps, "suspended");
    platform.drain.begin({});
    const refusal = { code: "draining", status: 503, details: { retry_after_s: 30 } };
    const refused = (act: () => unknown) => expect(async () => act()).rejects.toMatchObject(refusal);
    await refused(() => platform.machines.create("shop", { config: SMALL }));
    await refused(() => platform.machines.create("shop", { config: SMALL, skipLaunch: true }));
    await refused(() => platform.machines.start("shop", sleeps));
    await refused(() => platform.machines.restart("shop", runs));
    await refused(() => platform.machines.update("shop", runs, SMALL));
    expect(platform.machines.start("shop", runs), "it runs already").toEqual({ previousState: "running" });
    expect(record(runs).state, "a drain without suspend leaves machines as they are").toBe("running");
    platform.drain.end();
    platform.machines.start("shop", sleeps);
    await reach(sleeps, "running");
  });

  test("an image that takes long does not slip a machine in", async () => {
    const image = Promise.withResolvers<void>();
    const hold = world.images.hold.bind(world.images);
    world.images.hold = (reference) => image.promise.then(() => hold(reference));
    const creating = platform.machines.create("shop", { config: SMALL });
    platform.drain.begin({});
    image.resolve();
    await expect(creating).rejects.toMatchObject({ code: "draining" });
    expect(platform.machines.list("shop")).toEqual([]);
  });

  test("a machine that is still starting is waited for, and suspended", async () => {
    const release = world.holdBoots();
    const { record: made } = await platform.machines.create("shop", { config: SMALL });
    platform.drain.begin({ suspend: true });
    expect(results()).toEqual({ [made.id]: "waiting" });
    release();
    await drained();
    expect(record(made.id).state).toBe("suspended");
  });

  test("a few machines are suspended at a time", async () => {
    const ids = await Promise.all([machine(), machine(), machine(), machine(), machine()]);
    const held = Promise.withResolvers<void>();
    world.host.hold.capture = held.promise;
    platform.drain.begin({ suspend: true });
    await vi.waitFor(
      () => expect(Object.values(results()).filter((result) => result === "suspending")).toHaveLength(2),
      PATIENT_MS,
    );
    expect(Object.values(results()).filter((result) => result === "waiting")).toHaveLength(3);
    held.resolve();
    delete world.host.hold.capture;
    await drained();
    expect(ids.map((id) => record(id).state)).toEqual(ids.map(() => "suspended"));
  });

  test("open requests get their time before a machine is suspended, all machines' at the same time", async () => {
    const asked: string[] = [];
    const requests = Promise.withResolvers<void>();
    const finishRequests = (id: string) => {
      asked.push(id);
      return requests.promise;
    };
    await restart({ wrap: (deps) => ({ ...deps, finishRequests }) });
    const ids = await Promise.all([machine(), machine(), machine()]);
    platform.drain.begin({ suspend: true });
    await vi.waitFor(() => expect(asked.toSorted()).toEqual(ids.toSorted()), PATIENT_MS);
    expect(Object.values(results())).toEqual(["waiting", "waiting", "waiting"]);
    requests.resolve();
    await drained();
    expect(Object.values(results())).toEqual(["suspended", "suspended", "suspended"]);
  });

  test("a suspend that fails once is tried again", async () => {
    const id = await machine();
    world.host.faults.capture = new Error("a hiccup");
    platform.drain.begin({ suspend: true });
    await drained();
    expect(record(id).state).toBe("suspended");
    expect(events(id, "capture_failed")).toHaveLength(1);
  });

  test("a machine whose suspends keep failing is left running, with the reason", async () => {
    const id = await machine();
    const broken = new FakeHypervisor(world.host);
    const adopt = broken.adopt.bind(broken);
    broken.adopt = async (ref) => {
      const vmm = await adopt(ref);
      vmm.capture = () => Promise.reject(new Error("the disk is full"));
      return vmm;
    };
    await restart({ hypervisor: broken });
    platform.drain.begin({ suspend: true });
    await drained();
    expect(results()).toEqual({ [id]: "left" });
    expect(events(id, "not_suspended")[0]?.details.reason).toBe("the last suspend failed: the disk is full");
    expect(nonceOf(id)).toBeDefined();
  });
});

describe("a drain", () => {
  test("continues after a restart of the platform, and is over after the next one", async () => {
    const [one, two] = [await machine(), await machine(LARGE)];
    const held = Promise.withResolvers<void>();
    world.host.hold.capture = held.promise;
    platform.drain.begin({ suspend: true });
    await vi.waitFor(() => expect(record(one).state).toBe("suspending"), PATIENT_MS);
    const closing = platform.close();
    held.resolve();
    delete world.host.hold.capture;
    await closing;
    platform = await startPlatform(world);
    expect(() => platform.machines.start("shop", one)).toThrow(expect.objectContaining({ code: "draining" }));
    await drained();
    expect(results()).toEqual({ [one]: "suspended", [two]: "left" });
    await restart();
    await reach(one, "running");
    expect(record(two)).toMatchObject({ state: "running", notSuspended: null });
  });

  test("without suspend lasts through restarts of the platform, until the host's or its end", async () => {
    platform.drain.begin({});
    await restart();
    expect(platform.drain.active).toBe(true);
    await reboot();
    expect(platform.drain.active).toBe(false);
  });

  test("that is ended lets everything run again, also what was just being suspended", async () => {
    const ids = await Promise.all([machine(), machine(), machine()]);
    const nonces = ids.map(nonceOf);
    const held = Promise.withResolvers<void>();
    world.host.hold.capture = held.promise;
    platform.drain.begin({ suspend: true });
    await vi.waitFor(() => expect(Object.values(results())).toContain("suspending"), PATIENT_MS);
    platform.drain.end();
    held.resolve();
    delete world.host.hold.capture;
    await Promise.all(ids.map((id) => reach(id, "running")));
    expect(ids.map(nonceOf)).toEqual(nonces);
    platform.drain.end();
    expect(platform.drain.get(), "once more does no harm").toBeUndefined();
  });

  test("that is asked for twice stays the same, can begin to suspend, but not cease to", async () => {
    const id = await machine(LARGE);
    const plain = platform.drain.begin({});
    expect(platform.drain.begin({})).toEqual(plain);
    const suspending = platform.drain.begin({ suspend: true });
    expect(suspending.drain).toMatchObject({ suspend: true, startedAt: plain.drain.startedAt });
    expect(() => platform.drain.begin({})).toThrow(/draining already, and suspends.*`hibernaut undrain`/);
    await drained();
    expect(results()).toEqual({ [id]: "left" });
    platform.drain.begin({ suspend: true });
    await drained();
    expect(() => platform.drain.begin({ timeoutS: 5 })).toThrow(/Only a drain that suspends machines has a time limit/);
  });

  test("forgets a machine about which someone decides meanwhile", async () => {
    const id = await machine();
    platform.drain.begin({ suspend: true });
    await drained();
    platform.machines.stop("shop", id);
    await reach(id, "stopped");
    await reboot();
    expect(record(id).state).toBe("stopped");
  });
});
