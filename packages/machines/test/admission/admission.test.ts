/** Starts on a host that has room in memory for a few machines. Real rules, fake hypervisor. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type FakePlatform,
  newWorld,
  SMALL,
  startPlatform,
  type World,
} from "../../../platform/test/helpers/fake-world.ts";
import type { MachineDependencies } from "../../src/dependencies.ts";
import type { WaitTarget } from "../../src/waiting.ts";

const MB = 1024 * 1024;
const TIMEOUT = { timeoutMs: 10_000 };
/** What a fake VMM takes for itself. */
const VMM_MB = 64;

let world: World;
let platform: FakePlatform;
/** What programs could have if there were no VMMs. */
let hostMb: number;
let now: number;
let reads: number;

beforeEach(async () => {
  world = await newWorld();
  [hostMb, now, reads] = [100_000, Date.now(), 0];
  await open();
  platform.apps.create("shop");
});
afterEach(async () => {
  world.releaseBoots();
  await platform.close();
  expect(world.host.mostPerMachine).toBeLessThanOrEqual(1);
  await world.dispose();
});

async function open(settings: Partial<MachineDependencies["settings"]> = {}): Promise<void> {
  const hostMemory = {
    available() {
      reads += 1;
      return (hostMb - world.host.processes.size * VMM_MB) * MB;
    },
  };
  platform = await startPlatform(world, {
    settings: { memoryReserveMb: 100, memoryOvercommit: 100, ...settings },
    wrap: (deps) => ({ ...deps, hostMemory, clock: () => new Date(now), memoryPressure: { short: async () => false } }),
  });
}

async function reopen(settings: Partial<MachineDependencies["settings"]>): Promise<void> {
  await platform.close();
  await open(settings);
}

const record = (id: string) => platform.machines.get("shop", id).record;
const reach = (id: string, ...targets: WaitTarget[]) => platform.machines.wait("shop", id, targets, TIMEOUT);
const start = (id: string) => platform.machines.start("shop", id);
/** The host has room for this many awake machines of 128 MB, and nothing else. */
const roomFor = (machines: number) => void (hostMb = 100 + machines * (128 + VMM_MB));

async function created(config: Partial<MachineConfig> = {}): Promise<string> {
  const { record: made } = await platform.machines.create("shop", {
    config: { ...SMALL, ...config },
    skipLaunch: true,
  });
  return made.id;
}

async function running(config: Partial<MachineConfig> = {}): Promise<string> {
  const id = await created(config);
  start(id);
  await reach(id, "running");
  return id;
}

async function asleep(): Promise<string> {
  const id = await running();
  platform.machines.suspend("shop", id);
  await reach(id, "suspended");
  return id;
}

describe("on a host without room", () => {
  test("a start is refused, the machine rests as it was, and starts once another one sleeps", async () => {
    const [sleeping, awake] = [await asleep(), await running()];
    roomFor(1);
    const { snapshot } = record(sleeping);
    expect(() => start(sleeping)).toThrow(
      expect.objectContaining({
        code: "host_full",
        message: expect.stringMatching(/needs 192 MB .* 0 MB are left of 228 MB.* Stop or suspend machines/),
        details: { needed_mb: 192, left_mb: 0, available_mb: 228, retry_after_s: 5 },
      }),
    );
    expect(record(sleeping)).toMatchObject({ state: "suspended", snapshot });
    platform.machines.suspend("shop", awake);
    await reach(awake, "suspended");
    start(sleeping);
    await reach(sleeping, "running");
    expect(record(sleeping).lastBoot?.kind).toBe("resume");
  });

  test("a create is refused before anything is made, and a machine that is not started can be made", async () => {
    roomFor(0);
    await expect(platform.machines.create("shop", { config: SMALL })).rejects.toMatchObject({ code: "host_full" });
    expect(platform.machines.list("shop")).toEqual([]);
    await created();
  });

  test("of many starts at once, as many are admitted as there is room for", async () => {
    const ids = [await created(), await created(), await created(), await created()];
    roomFor(2);
    const release = world.holdBoots();
    const admitted = ids.filter((id) => {
      try {
        start(id);
        return true;
      } catch {
        return false;
      }
    });
    expect(admitted).toEqual(ids.slice(0, 2));
    release();
    await Promise.all(admitted.map((id) => reach(id, "running")));
  });

  test("a restart of a machine that runs needs no more room", async () => {
    const id = await running();
    roomFor(1);
    platform.machines.restart("shop", id);
    await vi.waitFor(() => expect(record(id).state).not.toBe("running"));
    await reach(id, "running");
  });

  test("nothing is refused, or read, when admission is off; with 200 percent, guests count half", async () => {
    const id = await created();
    roomFor(0);
    await reopen({ memoryOvercommit: 200 });
    hostMb = 100 + 64 + VMM_MB;
    start(id);
    await reach(id, "running");
    await reopen({ memoryOvercommit: 0 });
    const other = await created();
    reads = 0;
    start(other);
    await reach(other, "running");
    expect(reads).toBe(0);
  });
});

describe("machines that are kept warm", () => {
  test("end before a start is refused, the oldest first, and only as many as it takes", async () => {
    await reopen({ keepWarmS: 300 });
    const [oldest, newest] = [await asleep(), await asleep()];
    const third = await created();
    hostMb = 100 + 3 * VMM_MB + 128 - 10;
    start(third);
    await reach(third, "running");
    expect([world.host.of(oldest).length, world.host.of(newest).length]).toEqual([0, 1]);
    expect(platform.warm.evicted.get("room")).toBe(1);
    expect(record(oldest), "its snapshot is all it needs").toMatchObject({ state: "suspended" });
  });

  test("need no room for their own QEMU, and are not ended for themselves", async () => {
    await reopen({ keepWarmS: 300 });
    const id = await asleep();
    hostMb = 100 + VMM_MB + 128;
    start(id);
    await reach(id, "running");
    expect(record(id).lastBoot?.kind).toBe("warm");
  });
});

describe("starts that nobody waits for", () => {
  test("a restart by policy waits for room, and uses up no attempt", async () => {
    const [id, other] = [await running(), await running()];
    roomFor(1);
    world.host.guest(id)?.exit(1);
    await reach(id, "restarting");
    await vi.waitFor(() => expect(messages()).toContain("a restart waits for room"));
    expect(record(id)).toMatchObject({ state: "restarting", restarts: 1, crash: { attempt: 1 } });
    platform.machines.stop("shop", other);
    await reach(id, "running");
    expect(record(id).restarts).toBe(1);
  });

  test("such a wait ends at once when the machine is stopped", async () => {
    const id = await running();
    roomFor(0);
    world.host.guest(id)?.exit(1);
    await vi.waitFor(() => expect(messages()).toContain("a restart waits for room"));
    platform.machines.stop("shop", id);
    await reach(id, "stopped");
  });

  test("of two restarts that find the same room, one gets it and the other waits for its turn", async () => {
    const ids = [await running(), await running()];
    roomFor(0);
    for (const id of ids) world.host.guest(id)?.exit(1);
    await vi.waitFor(() =>
      expect(messages().filter((message) => message === "a restart waits for room")).toHaveLength(2),
    );
    roomFor(1);
    await vi.waitFor(() => expect(ids.filter((id) => record(id).state === "running")).toHaveLength(1), 10_000);
    expect(ids.map((id) => record(id).state).toSorted()).toEqual(["restarting", "running"]);
    roomFor(2);
    await Promise.all(ids.map((id) => reach(id, "running")));
    expect(ids.map((id) => record(id).restarts)).toEqual([1, 1]);
  });

  test("a scheduled start waits for room, which the log says once, and is made up for", async () => {
    const id = await created({ schedule: "hourly" });
    const stop = platform.startTimer();
    try {
      roomFor(0);
      now += 2 * 3_600_000;
      platform.machines.cordon("shop", id, { on: true }); // has the timer look
      await vi.waitFor(() => expect(messages()).toContain("a start that is due waits for room"));
      expect(record(id).state).toBe("created");
      roomFor(1);
      now += 10_000; // it is looked at again by then
      platform.machines.cordon("shop", id, { on: false });
      await reach(id, "running");
      expect(messages().filter((message) => message === "a start that is due waits for room")).toHaveLength(1);
    } finally {
      stop();
    }
  });

  test("after a drain, machines start again as soon as each has room", async () => {
    const ids = [await running(), await running()];
    platform.drain.begin({ suspend: true });
    await Promise.all(ids.map((id) => reach(id, "suspended")));
    roomFor(1);
    platform.drain.end();
    await vi.waitFor(() => expect(messages()).toContain("a machine waits for room after a drain"));
    const [first] = ids.filter((id) => record(id).state !== "suspended");
    const [second = ""] = ids.filter((id) => id !== first);
    expect(record(second)).toMatchObject({ state: "suspended", drained: true });
    roomFor(2);
    await reach(second, "running");
    expect(record(second).lastBoot?.kind).toBe("resume");
  });

  test("a prewarm without room fails, says so, and the machine starts at the next demand", async () => {
    const id = await asleep();
    roomFor(0);
    await platform.machines.update("shop", id, { ...SMALL, image: "app:2" }, { prewarm: "healthy" });
    await reach(id, "prewarmed");
    expect(record(id).prewarm).toMatchObject({
      status: "failed",
      reason: expect.stringContaining("no room in memory"),
    });
    roomFor(1);
    start(id);
    await reach(id, "running");
  });
});

const messages = () => world.logged.map(({ message }) => message);
