/** Warm sleep on a fake host: what is kept, what ends it, and that nothing depends on it. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "../shop.ts";

const TIMEOUT = { timeoutMs: 5000 };
const KEEP_S = 300;
/** What a fake VMM takes: one of them fits, and a second one does not. */
const ROOM_FOR_ONE = { keepWarmMemoryMb: 100 };

let now = Date.now();
let memoryShort = false;
const shop = shopForEach({
  settings: { keepWarmS: KEEP_S },
  wrap: (deps) => ({ ...deps, clock: () => new Date(now), memoryPressure: { short: () => memoryShort } }),
});
beforeEach(() => {
  now = Date.now();
  memoryShort = false;
});
afterEach(async () => {
  vi.useRealTimers();
  await shop.platform.close();
  expect(shop.host.processes.size, "the end of the platform ends what it kept").toBe(
    shop.world.store.machines.list().filter(({ state }) => state === "running").length,
  );
});

const view = (id: string) => shop.machines.get("shop", id);
const processes = (id: string) => shop.host.of(id).length;
const ended = (id: string) => vi.waitFor(() => expect(processes(id)).toBe(0), TIMEOUT.timeoutMs);

/** Why kept VMMs ended, as the machine's history tells, newest first. */
const ends = (id: string) =>
  shop.world.store.machines
    .events(id, 1000)
    .filter(({ type }) => type === "kept_ended")
    .map(({ details }) => details.reason);

async function start(id: string): Promise<MachineRecord["lastBoot"]> {
  await shop.start(id);
  return view(id).record.lastBoot;
}

describe("a machine whose VMM is kept", () => {
  test("is suspended, with a snapshot and a time; its start is warm, and the same process continues", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    const [process] = shop.host.of(id);
    await shop.suspend(id);
    expect(view(id)).toMatchObject({
      record: { state: "suspended", snapshot: { generation: expect.any(String) } },
      warmUntil: new Date(now + KEEP_S * 1000).toISOString(),
    });
    expect(shop.request(id), "its CPUs stand still").toBeUndefined();
    expect(await start(id)).toMatchObject({ kind: "warm", reason: "snapshot" });
    expect(shop.host.of(id)).toEqual([process]);
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(view(id)).toMatchObject({ record: { snapshot: null }, warmUntil: null });
  });

  test("sleeps and wakes again and again", async () => {
    const id = await shop.run();
    const nonce = shop.request(id)?.nonce;
    for (let cycle = 0; cycle < 20; cycle += 1) {
      await shop.suspend(id);
      expect(await start(id)).toMatchObject({ kind: "warm" });
    }
    expect(shop.request(id)).toEqual({ nonce, count: 2 });
    expect(shop.host.restored).toHaveLength(20);
    expect(ends(id), "a wake tells by itself").toEqual([]);
  });

  test("starts from its snapshot when the VMM was killed meanwhile", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    shop.lose(id);
    await vi.waitFor(() => expect(view(id).warmUntil).toBeNull());
    expect(ends(id)).toEqual(["gone"]);
    expect(await start(id)).toMatchObject({ kind: "resume" });
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("starts from its snapshot when the VMM no longer answers", { timeout: 15_000 }, async () => {
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    const [process] = shop.host.of(id);
    if (process === undefined) throw new Error("nothing was kept");
    process.hangs = true;
    expect(await start(id)).toMatchObject({ kind: "resume" });
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(processes(id)).toBe(1);
  });

  test("wakes warm on a slow host, where the VMM takes longer to answer", async () => {
    await shop.restart({ settings: { slowFactor: 10 } });
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    const [process] = shop.host.of(id);
    if (process === undefined) throw new Error("nothing was kept");
    process.answersAfterMs = 1200;
    expect(await start(id)).toMatchObject({ kind: "warm" });
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("resumes in the next platform, which ends what the last one kept", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    await shop.restart();
    expect(processes(id)).toBe(0);
    expect(await start(id)).toMatchObject({ kind: "resume" });
    expect(shop.request(id)?.nonce).toBe(before?.nonce);
  });

  test("waits for a suspend to be whole when a start comes in the middle, and loses nothing", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    shop.machines.suspend("shop", id);
    await shop.start(id);
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });
});

describe("nothing is kept", () => {
  test.each([
    ["when the setting says so", { keepWarmS: 0 }, {}],
    ["when the budget is nothing", { keepWarmMemoryMb: 0 }, {}],
    ["when the machine says so", {}, { services: [{ internal_port: 8080, keep_warm: 0 }] }],
  ])("%s", async (_, settings, config) => {
    await shop.restart({ settings: settings });
    const id = await shop.sleeper(config);
    expect(processes(id)).toBe(0);
    expect(view(id).warmUntil).toBeNull();
    expect(await start(id)).toMatchObject({ kind: "resume" });
  });

  test("during a drain, and of what was kept before it; after it again", async () => {
    const [one, two] = [await shop.run(), await shop.run()];
    await shop.suspend(one);
    shop.platform.drain.begin({ suspend: true });
    await shop.reach(two, "suspended");
    await Promise.all([ended(one), ended(two)]);
    shop.platform.drain.end();
    await shop.reach(two, "running");
    await shop.suspend(two);
    expect(processes(two)).toBe(1);
  });
});

describe("a kept VMM ends at once, and the machine is as it would be without it", () => {
  test.each([
    ["stop", "stopped", (id: string) => shop.machines.stop("shop", id)],
    ["update", "suspended", (id: string) => shop.machines.update("shop", id, { ...SMALL, env: { A: "b" } })],
    ["destroy", "destroyed", (id: string) => shop.machines.destroy("shop", id)],
    ["new secrets", "suspended", async () => shop.platform.secrets.set("shop", { KEY: "value" })],
  ] as const)("%s", async (_, state, act) => {
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    await act(id);
    await shop.reach(id, state);
    await ended(id);
    expect(ends(id), "what ended it tells by itself").toEqual([]);
    if (state === "destroyed") return;
    expect(view(id)).toMatchObject({ record: { snapshot: null }, warmUntil: null });
    expect(await start(id)).toMatchObject({ kind: "cold" });
    expect(shop.request(id)?.nonce).not.toBe(before?.nonce);
  });

  test("when its time is over", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const id = await shop.sleeper();
    now += KEEP_S * 1000 - 1;
    await vi.advanceTimersByTimeAsync(1000);
    expect(processes(id)).toBe(1);
    now += 1;
    await vi.advanceTimersByTimeAsync(1000);
    await ended(id);
    expect(shop.platform.warm.evicted).toEqual(new Map([["expired", 1]]));
    await vi.waitFor(() => expect(ends(id)).toEqual(["expired"]));
    const [last] = shop.world.store.outbox.before(Number.MAX_SAFE_INTEGER, {}, 1);
    expect(last).toMatchObject({ type: "machine.kept_ended", machine: id, data: { to: "suspended" } });
    expect(await start(id)).toMatchObject({ kind: "resume" });
  });

  test("for a newer one that does not fit next to it", async () => {
    await shop.restart({ settings: ROOM_FOR_ONE });
    const [one, two] = [await shop.run(), await shop.run()];
    await shop.suspend(one);
    now += 1;
    await shop.suspend(two);
    await ended(one);
    expect(processes(two)).toBe(1);
    expect(shop.platform.warm.evicted).toEqual(new Map([["budget", 1]]));
    await vi.waitFor(() => expect([ends(one), ends(two)]).toEqual([["budget"], []]));
    expect(await start(one)).toMatchObject({ kind: "resume" });
    expect(await start(two)).toMatchObject({ kind: "warm" });
  });

  test("when memory is short, one after the other, oldest first", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const [one, two] = [await shop.run(), await shop.run()];
    await shop.suspend(one);
    now += 1;
    await shop.suspend(two);
    memoryShort = true;
    await vi.advanceTimersByTimeAsync(1000);
    await ended(one);
    expect(processes(two)).toBe(1);
    await vi.advanceTimersByTimeAsync(1000);
    await ended(two);
    expect(shop.platform.warm.evicted).toEqual(new Map([["pressure", 2]]));
  });
});

describe("a chart", () => {
  const chart = async () => {
    const { machines } = await shop.platform.timelines.read(() => true, 1);
    return machines.flatMap(({ spans }) => spans.map(({ state, from, until }) => [state, (until - from) / 1000]));
  };

  test("tells when a sleeping machine was warm, also before the platform was restarted", async () => {
    const id = await shop.run();
    now += 60_000;
    await shop.suspend(id);
    now += 100_000;
    expect(await chart()).toEqual([
      ["running", 60],
      ["warm", 100],
    ]);
    expect(await start(id)).toMatchObject({ kind: "warm" });
    now += 50_000;
    await shop.suspend(id);
    now += 20_000;
    await shop.restart();
    now += 100_000;
    expect(await chart()).toEqual([
      ["running", 60],
      ["warm", 100],
      ["running", 50],
      ["warm", 20],
      ["suspended", 100],
    ]);
  });

  test("waits for a store that cannot be written, and no wake does", async () => {
    const id = await shop.run();
    now += 1000;
    await shop.suspend(id);
    now += 2000;
    const { timeline } = shop.world.store;
    const written = timeline.addWarm.bind(timeline);
    timeline.addWarm = () => {
      throw new Error("the disk is full");
    };
    expect(await start(id)).toMatchObject({ kind: "warm" });
    now += 3000;
    expect(await chart()).toEqual([
      ["running", 1],
      ["suspended", 2],
      ["running", 3],
    ]);
    timeline.addWarm = written;
    expect(await chart()).toEqual([
      ["running", 1],
      ["warm", 2],
      ["running", 3],
    ]);
  });
});
