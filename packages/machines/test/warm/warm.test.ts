/** Warm sleep on a fake host: what is kept, what ends it, and that nothing depends on it. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type FakePlatform,
  newWorld,
  SMALL,
  startPlatform,
  type World,
} from "../../../platform/test/helpers/fake-world.ts";
import type { MachineDependencies } from "../../src/dependencies.ts";

const TIMEOUT = { timeoutMs: 5000 };
const KEEP_S = 300;
/** What a fake VMM takes: one of them fits, and a second one does not. */
const ROOM_FOR_ONE = { keepWarmMemoryMb: 100 };

let world: World;
let platform: FakePlatform;
let now: number;
let memoryShort: boolean;

beforeEach(async () => {
  world = await newWorld();
  now = Date.now();
  memoryShort = false;
  await open();
});
afterEach(async () => {
  vi.useRealTimers();
  await platform.close();
  expect(world.host.processes.size, "the end of the platform ends what it kept").toBe(
    world.store.machines.list().filter(({ state }) => state === "running").length,
  );
  expect(world.host.mostPerMachine).toBe(1);
  expect(new Set(world.host.restored).size, "no snapshot ran twice").toBe(world.host.restored.length);
  await world.dispose();
});

async function open(settings: Partial<MachineDependencies["settings"]> = {}): Promise<void> {
  platform = await startPlatform(world, {
    settings: { keepWarmS: KEEP_S, ...settings },
    wrap: (deps) => ({ ...deps, clock: () => new Date(now), memoryPressure: { short: async () => memoryShort } }),
  });
}

async function reopen(settings: Partial<MachineDependencies["settings"]>): Promise<void> {
  await platform.close();
  await open(settings);
}

async function running(name: string, config: Partial<MachineRecord["config"]> = {}): Promise<string> {
  if (platform.apps.list().length === 0) platform.apps.create("shop");
  const { record } = await platform.machines.create("shop", { name, config: { ...SMALL, ...config } });
  await reach(record.id, "running");
  return record.id;
}

const reach = (id: string, state: "running" | "suspended" | "stopped" | "destroyed") =>
  platform.machines.wait("shop", id, [state], TIMEOUT);
const view = (id: string) => platform.machines.get("shop", id);
const request = (id: string) => world.host.guest(id)?.request();
const processes = (id: string) => world.host.of(id).length;
const ended = (id: string) => vi.waitFor(() => expect(processes(id)).toBe(0), TIMEOUT.timeoutMs);

/** Why kept VMMs ended, as the machine's history tells, newest first. */
const ends = (id: string) =>
  world.store.machines
    .events(id, 1000)
    .filter(({ type }) => type === "kept_ended")
    .map(({ details }) => details.reason);

async function suspend(id: string): Promise<void> {
  platform.machines.suspend("shop", id);
  await reach(id, "suspended");
}

async function start(id: string): Promise<MachineRecord["lastBoot"]> {
  platform.machines.start("shop", id);
  await reach(id, "running");
  return view(id).record.lastBoot;
}

describe("a machine whose VMM is kept", () => {
  test("is suspended, with a snapshot and a time; its start is warm, and the same process continues", async () => {
    const id = await running("one");
    const before = request(id);
    const [process] = world.host.of(id);
    await suspend(id);
    expect(view(id)).toMatchObject({
      record: { state: "suspended", snapshot: { generation: expect.any(String) } },
      warmUntil: new Date(now + KEEP_S * 1000).toISOString(),
    });
    expect(request(id), "its CPUs stand still").toBeUndefined();
    expect(await start(id)).toMatchObject({ kind: "warm", reason: "snapshot" });
    expect(world.host.of(id)).toEqual([process]);
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(view(id)).toMatchObject({ record: { snapshot: null }, warmUntil: null });
  });

  test("sleeps and wakes again and again", async () => {
    const id = await running("one");
    const nonce = request(id)?.nonce;
    for (let cycle = 0; cycle < 20; cycle += 1) {
      await suspend(id);
      expect(await start(id)).toMatchObject({ kind: "warm" });
    }
    expect(request(id)).toEqual({ nonce, count: 2 });
    expect(world.host.restored).toHaveLength(20);
    expect(ends(id), "a wake tells by itself").toEqual([]);
  });

  test("is started once by fifty starts", async () => {
    const id = await running("one");
    await suspend(id);
    for (let i = 0; i < 50; i += 1) platform.machines.start("shop", id);
    await reach(id, "running");
    expect(world.host.restored).toHaveLength(1);
  });

  test("starts from its snapshot when the VMM was killed meanwhile", async () => {
    const id = await running("one");
    const before = request(id);
    await suspend(id);
    const [process] = world.host.of(id);
    if (process) world.host.end(process.ref);
    await vi.waitFor(() => expect(view(id).warmUntil).toBeNull());
    expect(ends(id)).toEqual(["gone"]);
    expect(await start(id)).toMatchObject({ kind: "resume" });
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("starts from its snapshot when the VMM no longer answers", { timeout: 15_000 }, async () => {
    const id = await running("one");
    const before = request(id);
    await suspend(id);
    const [process] = world.host.of(id);
    if (process === undefined) throw new Error("nothing was kept");
    process.hangs = true;
    expect(await start(id)).toMatchObject({ kind: "resume" });
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(processes(id)).toBe(1);
  });

  test("wakes warm on a slow host, where the VMM takes longer to answer", async () => {
    await reopen({ slowFactor: 10 });
    const id = await running("one");
    const before = request(id);
    await suspend(id);
    const [process] = world.host.of(id);
    if (process === undefined) throw new Error("nothing was kept");
    process.answersAfterMs = 1200;
    expect(await start(id)).toMatchObject({ kind: "warm" });
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("resumes in the next platform, which ends what the last one kept", async () => {
    const id = await running("one");
    const before = request(id);
    await suspend(id);
    await reopen({});
    expect(processes(id)).toBe(0);
    expect(await start(id)).toMatchObject({ kind: "resume" });
    expect(request(id)?.nonce).toBe(before?.nonce);
  });

  test("waits for a suspend to be whole when a start comes in the middle, and loses nothing", async () => {
    const id = await running("one");
    const before = request(id);
    platform.machines.suspend("shop", id);
    platform.machines.start("shop", id);
    await reach(id, "running");
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });
});

describe("nothing is kept", () => {
  test.each([
    ["when the setting says so", { keepWarmS: 0 }, {}],
    ["when the budget is nothing", { keepWarmMemoryMb: 0 }, {}],
    ["when the machine says so", {}, { services: [{ internal_port: 8080, keep_warm: 0 }] }],
  ])("%s", async (_, settings, config) => {
    await reopen(settings);
    const id = await running("one", config);
    await suspend(id);
    expect(processes(id)).toBe(0);
    expect(view(id).warmUntil).toBeNull();
    expect(await start(id)).toMatchObject({ kind: "resume" });
  });

  test("during a drain, and of what was kept before it; after it again", async () => {
    const [one, two] = [await running("one"), await running("two")];
    await suspend(one);
    platform.drain.begin({ suspend: true });
    await reach(two, "suspended");
    await Promise.all([ended(one), ended(two)]);
    platform.drain.end();
    await reach(two, "running");
    await suspend(two);
    expect(processes(two)).toBe(1);
  });
});

describe("a kept VMM ends at once, and the machine is as it would be without it", () => {
  test.each([
    ["stop", "stopped", (id: string) => platform.machines.stop("shop", id)],
    ["update", "suspended", (id: string) => platform.machines.update("shop", id, { ...SMALL, env: { A: "b" } })],
    ["destroy", "destroyed", (id: string) => platform.machines.destroy("shop", id)],
    ["new secrets", "suspended", async () => platform.secrets.set("shop", { KEY: "value" })],
  ] as const)("%s", async (_, state, act) => {
    const id = await running("one");
    const before = request(id);
    await suspend(id);
    await act(id);
    await reach(id, state);
    await ended(id);
    expect(ends(id), "what ended it tells by itself").toEqual([]);
    if (state === "destroyed") return;
    expect(view(id)).toMatchObject({ record: { snapshot: null }, warmUntil: null });
    expect(await start(id)).toMatchObject({ kind: "cold" });
    expect(request(id)?.nonce).not.toBe(before?.nonce);
  });

  test("when its time is over", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const id = await running("one");
    await suspend(id);
    now += KEEP_S * 1000 - 1;
    await vi.advanceTimersByTimeAsync(1000);
    expect(processes(id)).toBe(1);
    now += 1;
    await vi.advanceTimersByTimeAsync(1000);
    await ended(id);
    expect(platform.warm.evicted).toEqual(new Map([["expired", 1]]));
    await vi.waitFor(() => expect(ends(id)).toEqual(["expired"]));
    const [last] = world.store.outbox.before(Number.MAX_SAFE_INTEGER, {}, 1);
    expect(last).toMatchObject({ type: "machine.kept_ended", machine: id, data: { to: "suspended" } });
    expect(await start(id)).toMatchObject({ kind: "resume" });
  });

  test("for a newer one that does not fit next to it", async () => {
    await reopen(ROOM_FOR_ONE);
    const [one, two] = [await running("one"), await running("two")];
    await suspend(one);
    now += 1;
    await suspend(two);
    await ended(one);
    expect(processes(two)).toBe(1);
    expect(platform.warm.evicted).toEqual(new Map([["budget", 1]]));
    await vi.waitFor(() => expect([ends(one), ends(two)]).toEqual([["budget"], []]));
    expect(await start(one)).toMatchObject({ kind: "resume" });
    expect(await start(two)).toMatchObject({ kind: "warm" });
  });

  test("when memory is short, one after the other, oldest first", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const [one, two] = [await running("one"), await running("two")];
    await suspend(one);
    now += 1;
    await suspend(two);
    memoryShort = true;
    await vi.advanceTimersByTimeAsync(1000);
    await ended(one);
    expect(processes(two)).toBe(1);
    await vi.advanceTimersByTimeAsync(1000);
    await ended(two);
    expect(platform.warm.evicted).toEqual(new Map([["pressure", 2]]));
  });
});

describe("a chart", () => {
  const chart = async () => {
    const { machines } = await platform.timelines.read(() => true, 1);
    return machines.flatMap(({ spans }) => spans.map(({ state, from, until }) => [state, (until - from) / 1000]));
  };

  test("tells when a sleeping machine was warm, also before the platform was restarted", async () => {
    const id = await running("one");
    now += 60_000;
    await suspend(id);
    now += 100_000;
    expect(await chart()).toEqual([
      ["running", 60],
      ["warm", 100],
    ]);
    expect(await start(id)).toMatchObject({ kind: "warm" });
    now += 50_000;
    await suspend(id);
    now += 20_000;
    await reopen({});
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
    const id = await running("one");
    now += 1000;
    await suspend(id);
    now += 2000;
    const { timeline } = world.store;
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
