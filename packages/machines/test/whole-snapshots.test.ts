/** A snapshot that was damaged while its machine slept. */
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type FakePlatform,
  newWorld,
  type PlatformParts,
  runningMachine,
  SMALL,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import type { MachineDependencies } from "../src/dependencies.ts";

const DAY_MS = 24 * 3_600_000;

let world: World;
let platform: FakePlatform;
let deps: MachineDependencies;
/** What the platform believes the time to be. */
let now: Date;
let id: string;

async function restart(parts: PlatformParts = {}): Promise<void> {
  platform = await startPlatform(world, {
    ...parts,
    wrap: (given) => (deps = { ...given, clock: () => now }),
  });
}

const suspend = async (machine: string) => {
  platform.machines.suspend("shop", machine);
  await platform.machines.wait("shop", machine, ["suspended"], { timeoutMs: 5000 });
};

beforeEach(async () => {
  now = new Date();
  world = await newWorld();
  await restart();
  id = await runningMachine(platform);
  await suspend(id);
  await vi.waitUntil(() => deps.snapshots.verifiedAt(id, generation()));
  now = new Date();
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const record = () => platform.machines.get("shop", id).record;
const generation = () => record().snapshot?.generation ?? expect.fail("there is no snapshot");
const file = (name: string) => join(world.folder, "machines", id, name);
const lastEvent = () => platform.machines.events("shop", id, 1)[0];
const look = () => platform.scrubber.look(new AbortController().signal);
const checkedAt = async () => (await deps.snapshots.verifiedAt(id, generation()))?.getTime();
const content = async (name: string) => (await readFile(file(name))).toString("hex");
const started = async () => {
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
};

/** Damages a page that no guest of these tests uses. */
async function damage(): Promise<void> {
  await using memory = await open(join(file("snapshots"), generation(), "memory"), "r+");
  await memory.write("x", 100_001);
}

test("a machine is destroyed while its snapshot is sealed: that ends without a warning", async () => {
  const hold = Promise.withResolvers<[]>();
  await platform.close();
  await restart({ hotPages: async (machine) => (machine === id ? hold.promise : []) });
  await started();
  await suspend(id);
  platform.machines.destroy("shop", id);
  await platform.machines.wait("shop", id, ["destroyed"], { timeoutMs: 5000 });
  hold.resolve([]);
  // Snapshots are sealed one at a time, so the work on the first one has ended when the next one has its seal.
  const { record: made } = await platform.machines.create("shop", { config: SMALL });
  const next = made.id;
  await platform.machines.wait("shop", next, ["running"], { timeoutMs: 5000 });
  await suspend(next);
  const { snapshot } = platform.machines.get("shop", next).record;
  await vi.waitUntil(() => deps.snapshots.verifiedAt(next, snapshot?.generation ?? ""));
  expect(world.logged.filter(({ message }) => message.includes("sealed"))).toEqual([]);
});

test("a load that writes to the memory, as KVM's does, is not taken for damage", async () => {
  world.host.writesOnLoad = true;
  const { snapshots } = deps;
  const fitting: typeof snapshots.fitting = async (...args) => {
    const found = await snapshots.fitting(...args);
    if (typeof found === "string") return found;
    const { files } = found;
    const flaw = async () => {
      // The disk is slow: whatever does not wait for the check is done before it.
      await vi.waitUntil(() => world.host.of(id).length > 0);
      for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate);
      return files.flaw();
    };
    return { ...found, files: { damage: (signal) => files.damage(signal), flaw } };
  };
  deps.snapshots = new Proxy(snapshots, {
    get(target, key) {
      if (key === "fitting") return fitting;
      const member = Reflect.get(target, key, target) as unknown;
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
  await started();
  expect(record().lastBoot).toMatchObject({ kind: "resume", reason: "snapshot" });
});

test("after a restart of the host, damage is found before the guest runs: a cold start with the reason", async () => {
  await damage();
  await platform.close();
  world.bootId = "boot-2";
  await restart();
  await started();
  expect(record().lastBoot).toMatchObject({
    kind: "cold",
    reason: "snapshot_corrupt: the memory file has changed, in MiB 1 of 1",
  });
});

test("after a restart of the host, a memory that is whole is resumed", async () => {
  await platform.close();
  world.bootId = "boot-2";
  await restart();
  await started();
  expect(record().lastBoot).toMatchObject({ kind: "resume" });
  expect(world.logged).toContainEqual({
    message: "all of the memory was read before the resume",
    fields: expect.objectContaining({ machine: id, why: "the host was restarted" }),
  });
});

describe("the scrubber", () => {
  test("leaves alone what was read within a day, and reads it when a day has passed", async () => {
    const atSuspend = await checkedAt();
    await look();
    expect(await checkedAt()).toBe(atSuspend);
    now = new Date(now.getTime() + DAY_MS + 60_000);
    await look();
    expect(await checkedAt()).toBeGreaterThan(atSuspend as number);
    const read = await checkedAt();
    await look();
    expect(await checkedAt()).toBe(read);
    expect(record().state).toBe("suspended");
    await started();
    expect(record().lastBoot).toMatchObject({ kind: "resume" });
  });

  test("discards a damaged snapshot with an event and the reason, and touches nothing else", async () => {
    const layer = await content("layer.ext4");
    await damage();
    now = new Date(now.getTime() + DAY_MS + 60_000);
    await look();
    const reason = "snapshot_corrupt: the memory file has changed";
    expect(lastEvent()).toMatchObject({ type: "discard_snapshot", details: { reason } });
    expect(record()).toMatchObject({ state: "suspended", snapshot: null });
    expect(await content("layer.ext4")).toBe(layer);
    await started();
    expect(record().lastBoot).toMatchObject({ kind: "cold", reason });
  });

  test("leaves a machine alone that starts meanwhile", async () => {
    now = new Date(now.getTime() + DAY_MS + 60_000);
    const scrub = vi.spyOn(deps.snapshots, "scrub");
    scrub.mockImplementation(async (_machine, _generation, { signal }) => {
      await started();
      expect(signal.aborted).toBe(true);
      return "snapshot_corrupt: the guest has written to it";
    });
    await look();
    expect(record()).toMatchObject({ state: "running", lastBoot: { kind: "resume" } });
  });

  test("says when a snapshot cannot be read, and discards nothing for it", async () => {
    now = new Date(now.getTime() + DAY_MS + 60_000);
    const scrub = vi.spyOn(deps.snapshots, "scrub").mockRejectedValue(new Error("Input/output error"));
    await look();
    scrub.mockRestore();
    expect(world.logged.at(-1)).toEqual({
      message: "the snapshot of a sleeping machine cannot be checked",
      fields: { machine: id, reason: "Input/output error" },
    });
    await started();
    expect(record().lastBoot).toMatchObject({ kind: "resume" });
  });
});
