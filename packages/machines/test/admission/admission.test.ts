/** Starts on a host that has room in memory for a few machines. Real rules, fake hypervisor. */
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { Admission } from "../../src/admission/admission.ts";
import { shopForEach } from "../shop.ts";

const MB = 1024 * 1024;
/** What a fake VMM takes for itself. */
const VMM_MB = 64;

/** What programs could have if there were no VMMs. */
let hostMb = 100_000;
let now = Date.now();
let reads = 0;

const shop = shopForEach({
  settings: { memoryReserveMb: 100, memoryOvercommit: 100 },
  wrap: (deps) => ({ ...deps, hostMemory, clock: () => new Date(now), memoryPressure: { short: () => false } }),
});
const hostMemory = {
  available() {
    reads += 1;
    return (hostMb - shop.host.processes.size * VMM_MB) * MB;
  },
};
beforeEach(() => {
  [hostMb, now, reads] = [100_000, Date.now(), 0];
});

const start = (id: string) => shop.machines.start("shop", id);
/** The host has room for this many awake machines of 128 MB, and nothing else. */
const roomFor = (machines: number) => void (hostMb = 100 + machines * (128 + VMM_MB));

describe("on a host without room", () => {
  test("a start is refused, the machine rests as it was, and starts once another one sleeps", async () => {
    const [sleeping, awake] = [await shop.sleeper(), await shop.run()];
    roomFor(1);
    const { snapshot } = shop.record(sleeping);
    expect(() => start(sleeping)).toThrow(
      expect.objectContaining({
        code: "host_full",
        message: expect.stringMatching(/needs 192 MB .* 0 MB are left of 228 MB.* Stop or suspend machines/),
        details: { needed_mb: 192, left_mb: 0, available_mb: 228, retry_after_s: 5 },
      }),
    );
    expect(shop.record(sleeping)).toMatchObject({ state: "suspended", snapshot });
    await shop.suspend(awake);
    await shop.start(sleeping);
    expect(shop.record(sleeping).lastBoot?.kind).toBe("resume");
  });

  test("a create is refused before anything is made, and a machine that is not started can be made", async () => {
    roomFor(0);
    await expect(shop.machines.create("shop", { config: SMALL })).rejects.toMatchObject({ code: "host_full" });
    expect(shop.machines.list("shop")).toEqual([]);
    await shop.create();
  });

  test("of many starts at once, as many are admitted as there is room for", async () => {
    const ids = [await shop.create(), await shop.create(), await shop.create(), await shop.create()];
    roomFor(2);
    const release = shop.world.holdBoots();
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
    await Promise.all(admitted.map((id) => shop.reach(id, "running")));
  });

  test("a restart of a machine that runs needs no more room", async () => {
    const id = await shop.run();
    roomFor(1);
    shop.machines.restart("shop", id);
    await vi.waitFor(() => expect(shop.record(id).state).not.toBe("running"));
    await shop.reach(id, "running");
  });

  test("nothing is refused, or read, when admission is off; with 200 percent, guests count half", async () => {
    const id = await shop.create();
    roomFor(0);
    await shop.restart({ settings: { memoryOvercommit: 200 } });
    hostMb = 100 + 64 + VMM_MB;
    await shop.start(id);
    await shop.restart({ settings: { memoryOvercommit: 0 } });
    const other = await shop.create();
    reads = 0;
    await shop.start(other);
    expect(reads).toBe(0);
  });
});

test("what a fork has in its VMM alone is not counted again as memory that its guest may still take", async () => {
  await shop.restart({ settings: { memoryOvercommit: 100 } });
  const id = await shop.run();
  const admission = new Admission({
    memory: { available: () => 1000 * MB },
    settings: { memoryReserveMb: 100, memoryOvercommit: 200 },
    overhead: VMM_MB * MB,
    warm: { until: () => undefined, evictable: () => 0, makeRoom: () => undefined },
    ownMemory: async (machine) => written.get(machine) ?? Promise.reject(new Error("it has ended")),
    log: { info: () => {} },
  });
  onTestFinished(() => admission.close());
  const written = new Map<string, number>();
  const leftMb = async () => {
    await admission.measure();
    return (admission.left() ?? 0) / MB;
  };
  admission.follow(shop.record(id));
  expect(await leftMb(), "half of its 128 MB, and the reserve").toBe(836);
  written.set(id, 50 * MB);
  expect(await leftMb(), "50 MB are gone from what is available").toBe(886);
  written.set(id, 128 * MB);
  expect(await leftMb(), "it claims nothing, and gives nothing").toBe(900);
  written.delete(id);
  expect(await leftMb(), "nobody knows better").toBe(900);
  await shop.suspend(id);
  admission.follow(shop.record(id));
  expect(await leftMb()).toBe(900);
});

describe("machines that are kept warm", () => {
  test("end before a start is refused, the oldest first, and only as many as it takes", async () => {
    await shop.restart({ settings: { keepWarmS: 300 } });
    const [oldest, newest] = [await shop.sleeper(), await shop.sleeper()];
    const third = await shop.create();
    hostMb = 100 + 3 * VMM_MB + 128 - 10;
    await shop.start(third);
    expect([shop.host.of(oldest).length, shop.host.of(newest).length]).toEqual([0, 1]);
    expect(shop.platform.warm.evicted.get("room")).toBe(1);
    expect(shop.record(oldest), "its snapshot is all it needs").toMatchObject({ state: "suspended" });
  });

  test("need no room for their own QEMU, and are not ended for themselves", async () => {
    await shop.restart({ settings: { keepWarmS: 300 } });
    const id = await shop.sleeper();
    hostMb = 100 + VMM_MB + 128;
    await shop.start(id);
    expect(shop.record(id).lastBoot?.kind).toBe("warm");
  });
});

describe("starts that nobody waits for", () => {
  test("a restart by policy waits for room, and uses up no attempt", async () => {
    const [id, other] = [await shop.run(), await shop.run()];
    roomFor(1);
    shop.host.guest(id)?.exit(1);
    await shop.reach(id, "restarting");
    await vi.waitFor(() => expect(shop.logged()).toContain("a restart waits for room"));
    expect(shop.record(id)).toMatchObject({ state: "restarting", restarts: 1, crash: { attempt: 1 } });
    shop.machines.stop("shop", other);
    await shop.reach(id, "running");
    expect(shop.record(id).restarts).toBe(1);
  });

  test("such a wait ends at once when the machine is stopped", async () => {
    const id = await shop.run();
    roomFor(0);
    shop.host.guest(id)?.exit(1);
    await vi.waitFor(() => expect(shop.logged()).toContain("a restart waits for room"));
    await shop.stop(id);
  });

  test("of two restarts that find the same room, one gets it and the other waits for its turn", async () => {
    const ids = [await shop.run(), await shop.run()];
    roomFor(0);
    for (const id of ids) shop.host.guest(id)?.exit(1);
    await vi.waitFor(() =>
      expect(shop.logged().filter((message) => message === "a restart waits for room")).toHaveLength(2),
    );
    roomFor(1);
    await vi.waitFor(() => expect(ids.filter((id) => shop.record(id).state === "running")).toHaveLength(1), 10_000);
    expect(ids.map((id) => shop.record(id).state).toSorted()).toEqual(["restarting", "running"]);
    roomFor(2);
    await Promise.all(ids.map((id) => shop.reach(id, "running")));
    expect(ids.map((id) => shop.record(id).restarts)).toEqual([1, 1]);
  });

  test("a scheduled start waits for room, which the log says once, and is made up for", async () => {
    const id = await shop.create({ schedule: "hourly" });
    const stop = shop.platform.startTimer();
    try {
      roomFor(0);
      now += 2 * 3_600_000;
      shop.machines.cordon("shop", id, { on: true }); // has the timer look
      await vi.waitFor(() => expect(shop.logged()).toContain("a start that is due waits for room"));
      expect(shop.record(id).state).toBe("created");
      roomFor(1);
      now += 10_000; // it is looked at again by then
      shop.machines.cordon("shop", id, { on: false });
      await shop.reach(id, "running");
      expect(shop.logged().filter((message) => message === "a start that is due waits for room")).toHaveLength(1);
    } finally {
      stop();
    }
  });

  test("after a drain, machines start again as soon as each has room", async () => {
    const ids = [await shop.run(), await shop.run()];
    shop.platform.drain.begin({ suspend: true });
    await Promise.all(ids.map((id) => shop.reach(id, "suspended")));
    roomFor(1);
    shop.platform.drain.end();
    await vi.waitFor(() => expect(shop.logged()).toContain("a machine waits for room after a drain"));
    const [first] = ids.filter((id) => shop.record(id).state !== "suspended");
    const [second = ""] = ids.filter((id) => id !== first);
    expect(shop.record(second)).toMatchObject({ state: "suspended", drained: true });
    roomFor(2);
    await shop.reach(second, "running");
    expect(shop.record(second).lastBoot?.kind).toBe("resume");
  });

  test("a prewarm without room fails, says so, and the machine starts at the next demand", async () => {
    const id = await shop.sleeper();
    roomFor(0);
    await shop.machines.update("shop", id, { ...SMALL, image: "app:2" }, { prewarm: "healthy" });
    await shop.reach(id, "prewarmed");
    expect(shop.record(id).prewarm).toMatchObject({
      status: "failed",
      reason: expect.stringContaining("no room in memory"),
    });
    roomFor(1);
    await shop.start(id);
  });
});
