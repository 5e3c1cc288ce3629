/** Machines that start by a schedule, or at a time that they asked for, on a clock that the test moves. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "../shop.ts";

let now = new Date("2026-05-04T10:00:00Z");
let failing = false;
let stop: () => void;
const shop = shopForEach({
  wrap: (deps) => {
    const { machines } = deps.store;
    const update: typeof machines.update = (record, event) => {
      if (failing) throw new Error("the disk is full");
      machines.update(record, event);
    };
    return { ...deps, clock: () => now, store: { ...deps.store, machines: { ...machines, update } } };
  },
});
beforeEach(() => {
  now = new Date("2026-05-04T10:00:00Z");
  failing = false;
  stop = shop.platform.startTimer();
});
afterEach(() => stop());

/** Ends the platform and starts the next one at that time. */
async function restart(at?: string): Promise<void> {
  stop();
  if (at !== undefined) now = new Date(at);
  await shop.restart();
  stop = shop.platform.startTimer();
}

/** Sets the clock, and lets the platform look at it. */
function clock(at: string): void {
  now = new Date(at);
  stop();
  stop = shop.platform.startTimer();
}

const view = (id: string) => shop.machines.get("shop", id);
const state = (id: string) => shop.record(id).state;
const history = (id: string) => shop.events(id).toReversed();
/** What the schedule did so far. */
const runs = (id: string) =>
  history(id)
    .filter(({ type, details }) => details["by"] === "schedule" || type === "schedule_skipped")
    .map(({ type, details }) => `${type} ${String(details["due"])}`);

async function stopped(config: Partial<MachineConfig>): Promise<string> {
  const id = await shop.run(config);
  await shop.stop(id);
  return id;
}

const HOURLY = { schedule: "30 * * * *" };

describe("a machine on a schedule", () => {
  test("that sleeps is resumed when a run is due, not before, and once", async () => {
    const id = await shop.sleeper(HOURLY);
    expect(view(id).nextRun).toBe("2026-05-04T10:30:00.000Z");
    clock("2026-05-04T10:29:59.999Z");
    expect(state(id)).toBe("suspended");
    clock("2026-05-04T10:30:00.000Z");
    await shop.reach(id, "running");
    expect(shop.record(id).lastBoot?.kind).toBe("resume");
    expect(view(id).nextRun).toBe("2026-05-04T11:30:00.000Z");
    await shop.suspend(id);
    clock("2026-05-04T10:31:00Z");
    expect(state(id)).toBe("suspended");
    expect(runs(id)).toEqual(["start 2026-05-04T10:30:00.000Z"]);
  });

  test("that is stopped, or never ran, is started cold; its time zone counts", async () => {
    const daily = { schedule: "0 13 * * *", schedule_timezone: "Europe/Berlin" };
    const [one, two] = [await stopped(daily), await shop.create(daily)];
    clock("2026-05-04T11:00:00Z");
    await Promise.all([shop.reach(one, "running"), shop.reach(two, "running")]);
    expect(shop.record(one).lastBoot?.kind).toBe("cold");
    expect(runs(two)).toEqual(["start 2026-05-04T11:00:00.000Z"]);
  });

  test("whose app may have no more running machines skips the run, and its history names the quota", async () => {
    await shop.run();
    const id = await stopped(HOURLY);
    shop.world.store.apps.setQuota("shop", { running: 1 });
    clock("2026-05-04T10:30:00Z");
    expect(runs(id)).toEqual(["schedule_skipped 2026-05-04T10:30:00.000Z"]);
    expect(history(id).at(-1)?.details["reason"]).toContain("for machines that run at once is 1");
    expect(state(id)).toBe("stopped");
  });

  test("that still runs skips the run, and says so in its history", async () => {
    const id = await shop.run(HOURLY);
    const { lastBoot } = shop.record(id);
    clock("2026-05-04T10:30:00Z");
    expect(runs(id)).toEqual(["schedule_skipped 2026-05-04T10:30:00.000Z"]);
    expect(history(id).at(-1)).toMatchObject({ from: "running", to: "running", details: { reason: /running/ } });
    expect(shop.record(id).lastBoot).toEqual(lastBoot);
  });

  test("makes up for missed runs with one when the platform is back, for the last of them", async () => {
    const id = await stopped(HOURLY);
    await restart("2026-05-05T02:45:00Z");
    await shop.reach(id, "running");
    expect(runs(id)).toEqual(["start 2026-05-05T02:30:00.000Z"]);
    await shop.stop(id);
    await restart();
    expect(state(id)).toBe("stopped");
  });

  test("does not start again when the platform ends right after it stored the start", async () => {
    const id = await stopped(HOURLY);
    shop.world.holdBoots();
    clock("2026-05-04T10:30:00Z");
    expect(state(id)).toBe("starting");
    shop.world.releaseBoots();
    await restart();
    await shop.reach(id, "running");
    expect(runs(id)).toEqual(["start 2026-05-04T10:30:00.000Z"]);
  });

  test("loses no run to a store that cannot be written: it is tried again", async () => {
    const id = await stopped(HOURLY);
    failing = true;
    clock("2026-05-04T10:30:00Z");
    expect(state(id)).toBe("stopped");
    clock("2026-05-04T10:30:05Z");
    const said = shop.world.logged.filter(({ message }) => message === "a start that is due cannot be stored");
    expect(said, "once, however long that takes").toHaveLength(1);
    failing = false;
    clock("2026-05-04T10:30:10Z");
    await shop.reach(id, "running");
    expect(runs(id)).toEqual(["start 2026-05-04T10:30:00.000Z"]);
  });

  test("runs nothing a second time when the clock is set back, and continues when it was years ahead", async () => {
    const id = await stopped(HOURLY);
    clock("2026-05-04T10:30:00Z");
    await shop.reach(id, "running");
    await shop.stop(id);
    clock("2026-05-04T08:00:00Z");
    clock("2026-05-04T10:30:00Z");
    expect(runs(id)).toHaveLength(1);
    clock("2038-01-01T00:00:00Z");
    await shop.reach(id, "running");
    await shop.stop(id);
    clock("2026-05-04T12:00:00Z");
    expect(view(id).nextRun).toBe("2026-05-04T12:30:00.000Z");
    clock("2026-05-04T12:30:00Z");
    await shop.reach(id, "running");
    expect(runs(id).at(-1)).toBe("start 2026-05-04T12:30:00.000Z");
  });

  test("that is about to sleep stays awake, and one that is being stopped starts afterwards", async () => {
    const id = await shop.run({ schedule: "30 * * * *" });
    shop.machines.stop("shop", id);
    expect(state(id)).toBe("stopping");
    clock("2026-05-04T10:30:00Z");
    await expect.poll(() => history(id).filter(({ type }) => type === "started")).toHaveLength(2);
    shop.machines.suspend("shop", id);
    clock("2026-05-04T11:30:00Z");
    await shop.reach(id, "running");
    expect(runs(id)).toEqual(["start 2026-05-04T10:30:00.000Z", "start 2026-05-04T11:30:00.000Z"]);
  });

  test("gets a new schedule by an update, which makes up for nothing, and loses it by another one", async () => {
    const id = await stopped({});
    expect(view(id).nextRun).toBeNull();
    now = new Date("2026-05-04T10:45:00Z");
    await shop.update(id, { ...HOURLY });
    await shop.reach(id, "stopped");
    expect(view(id).nextRun).toBe("2026-05-04T11:30:00.000Z");
    clock("2026-05-04T10:50:00Z");
    expect(state(id)).toBe("stopped");
    await shop.update(id);
    await shop.reach(id, "stopped");
    clock("2026-05-04T12:00:00Z");
    expect({ state: state(id), runs: runs(id) }).toEqual({ state: "stopped", runs: [] });
  });

  test("of an earlier release, which handled nothing, counts from the start of this one", async () => {
    const id = await stopped({ schedule: "daily" });
    const { scheduleHandled: _none, ...old } = shop.record(id);
    stop();
    await shop.platform.close();
    shop.world.store.machines.update(old);
    now = new Date("2026-09-01T12:00:00Z");
    await shop.open();
    stop = shop.platform.startTimer();
    expect(state(id)).toBe("stopped");
    expect(view(id).nextRun).toBe("2026-09-02T10:00:00.000Z");
  });

  test("waits while the platform drains, and is made up for afterwards", async () => {
    const id = await stopped(HOURLY);
    shop.platform.drain.begin({});
    clock("2026-05-04T10:30:00Z");
    clock("2026-05-04T11:45:00Z");
    expect({ state: state(id), runs: runs(id) }).toEqual({ state: "stopped", runs: [] });
    shop.platform.drain.end();
    await shop.reach(id, "running");
    expect(runs(id)).toEqual(["start 2026-05-04T11:30:00.000Z"]);
  });

  test("can be suspended, and is left alone once it is destroyed", async () => {
    const id = await shop.sleeper(HOURLY);
    expect(view(id).suspend).toEqual({ eligible: true, reasons: [] });
    shop.machines.destroy("shop", id);
    await shop.reach(id, "destroyed");
    clock("2026-05-04T12:00:00Z");
    expect({ nextRun: view(id).nextRun, runs: runs(id) }).toEqual({ nextRun: null, runs: [] });
  });

  test("is refused when it cannot run", async () => {
    const bad = shop.machines.create("shop", { config: { ...SMALL, schedule: "0 0 30 2 *" } });
    await expect(bad).rejects.toMatchObject({ code: "invalid_argument", details: { field: "config.schedule" } });
  });
});

describe("a wake that a machine planned", () => {
  const plan = (id: string, request: { at?: string; in?: number | string }) =>
    shop.platform.guestApi.planWake(id, request);

  test("resumes it at that time, also after a restart of the platform, and once", async () => {
    const id = await shop.run();
    expect(plan(id, { in: "1h30m" })).toEqual({ at: "2026-05-04T11:30:00.000Z" });
    await shop.suspend(id);
    await restart("2026-05-04T11:29:59Z");
    expect(shop.record(id)).toMatchObject({ state: "suspended", wakeAt: "2026-05-04T11:30:00.000Z" });
    await restart("2026-05-04T12:00:00Z");
    await shop.reach(id, "running");
    expect(shop.record(id)).toMatchObject({ wakeAt: null, lastBoot: { kind: "resume" } });
    const asked = history(id).find(({ details }) => details["by"] === "wake");
    expect(asked?.details).toEqual({ by: "wake", due: "2026-05-04T11:30:00.000Z" });
  });

  test("is over when the machine is awake by then", async () => {
    const id = await shop.run();
    plan(id, { at: "2026-05-04T12:00:00+01:00" });
    clock("2026-05-04T11:00:00Z");
    expect(shop.record(id)).toMatchObject({ state: "running", wakeAt: null });
    await shop.suspend(id);
    clock("2026-05-04T13:00:00Z");
    expect(state(id)).toBe("suspended");
  });

  test("is forgotten by a stop, taken back, and replaced by the next one", async () => {
    const id = await shop.run();
    plan(id, { in: 60 });
    plan(id, { in: 120 });
    expect(shop.record(id).wakeAt).toBe("2026-05-04T10:02:00.000Z");
    shop.platform.guestApi.cancelWake(id);
    expect(shop.record(id).wakeAt).toBeNull();
    plan(id, { in: 60 });
    await shop.stop(id);
    clock("2026-05-04T11:00:00Z");
    expect(shop.record(id)).toMatchObject({ state: "stopped", wakeAt: null });
  });

  test.each([
    [{}, /either `at`, a time, or `in`/],
    [{ at: "2026-05-05T00:00:00Z", in: 5 }, /either `at`/],
    [{ at: "2026-05-04T10:00:00Z" }, /not in the future: it is 2026-05-04T10:00:00.000Z now/],
    [{ at: "2026-05-04T12:30:00" }, /RFC 3339 with an offset/],
    [{ at: "2027-02-30T00:00:00Z" }, /not a valid time/],
    [{ at: "tomorrow" }, /not a valid time/],
    [{ at: "2027-05-05T10:00:00Z" }, /more than a year away/],
    [{ in: "9000h" }, /more than a year away/],
    [{ in: 0 }, /not in the future/],
    [{ in: -5 }, /not a valid duration/],
    [{ in: "soon" }, /not a valid duration/],
  ])("%j is refused with what to do", async (request, sentence) => {
    const id = await shop.create({});
    expect(() => plan(id, request)).toThrowError(sentence);
    expect(shop.record(id).wakeAt ?? null).toBeNull();
  });
});
