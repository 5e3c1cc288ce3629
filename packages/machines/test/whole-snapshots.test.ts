/** A snapshot that was damaged while its machine slept. */
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { MachineDependencies } from "../src/dependencies.ts";
import { shopForEach } from "./shop.ts";

const DAY_MS = 24 * 3_600_000;

let deps: MachineDependencies;
/** What the platform believes the time to be. */
let now: Date;
let id: string;
const shop = shopForEach({ wrap: (given) => (deps = { ...given, clock: () => now }) });

beforeEach(async () => {
  id = await shop.sleeper();
  await vi.waitUntil(() => deps.snapshots.verifiedAt(id, generation()));
  now = new Date();
});

/** The host is restarted while everything sleeps. */
async function reboot(): Promise<void> {
  shop.world.bootId = "boot-2";
  await shop.restart();
}

const record = () => shop.record(id);
const generation = () => record().snapshot?.generation ?? expect.fail("there is no snapshot");
const file = (name: string) => join(shop.world.folder, "machines", id, name);
const look = () => shop.platform.scrubber.look(new AbortController().signal);
const checkedAt = async () => (await deps.snapshots.verifiedAt(id, generation()))?.getTime();
const content = async (name: string) => (await readFile(file(name))).toString("hex");

/** Damages a page that no guest of these tests uses. */
async function damage(): Promise<void> {
  await using memory = await open(join(file("snapshots"), generation(), "memory"), "r+");
  await memory.write("x", 100_001);
}

test("a machine is destroyed while its snapshot is sealed: that ends without a warning", async () => {
  const hold = Promise.withResolvers<[]>();
  await shop.restart({ hotPages: async (machine) => (machine === id ? hold.promise : []) });
  await shop.start(id);
  await shop.suspend(id);
  shop.machines.destroy("shop", id);
  await shop.reach(id, "destroyed");
  hold.resolve([]);
  // Snapshots are sealed one at a time, so the work on the first one has ended when the next one has its seal.
  const next = await shop.sleeper();
  const { snapshot } = shop.record(next);
  await vi.waitUntil(() => deps.snapshots.verifiedAt(next, snapshot?.generation ?? ""));
  expect(shop.logged().filter((message) => message.includes("sealed"))).toEqual([]);
});

test("a load that writes to the memory, as KVM's does, is not taken for damage", async () => {
  shop.host.writesOnLoad = true;
  const { snapshots } = deps;
  const fitting: typeof snapshots.fitting = async (...args) => {
    const found = await snapshots.fitting(...args);
    if (typeof found === "string") return found;
    const { files } = found;
    const flaw = async () => {
      // The disk is slow: whatever does not wait for the check is done before it.
      await vi.waitUntil(() => shop.host.of(id).length > 0);
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
  await shop.start(id);
  expect(record().lastBoot).toMatchObject({ kind: "resume", reason: "snapshot" });
});

test("after a restart of the host, damage is found before the guest runs: a cold start with the reason", async () => {
  await damage();
  await reboot();
  await shop.start(id);
  expect(record().lastBoot).toMatchObject({
    kind: "cold",
    reason: "snapshot_corrupt: the memory file has changed, in MiB 1 of 1",
  });
});

test("after a restart of the host, a memory that is whole is resumed", async () => {
  await reboot();
  await shop.start(id);
  expect(record().lastBoot).toMatchObject({ kind: "resume" });
  expect(shop.world.logged).toContainEqual({
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
    await shop.start(id);
    expect(record().lastBoot).toMatchObject({ kind: "resume" });
  });

  test("discards a damaged snapshot with an event and the reason, and touches nothing else", async () => {
    const layer = await content("layer.ext4");
    await damage();
    now = new Date(now.getTime() + DAY_MS + 60_000);
    await look();
    const reason = "snapshot_corrupt: the memory file has changed";
    expect(shop.events(id)[0]).toMatchObject({ type: "discard_snapshot", details: { reason } });
    expect(record()).toMatchObject({ state: "suspended", snapshot: null });
    expect(await content("layer.ext4")).toBe(layer);
    await shop.start(id);
    expect(record().lastBoot).toMatchObject({ kind: "cold", reason });
  });

  test("leaves a machine alone that starts meanwhile", async () => {
    now = new Date(now.getTime() + DAY_MS + 60_000);
    const scrub = vi.spyOn(deps.snapshots, "scrub");
    scrub.mockImplementation(async (_machine, _generation, { signal }) => {
      await shop.start(id);
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
    expect(shop.world.logged.at(-1)).toEqual({
      message: "the snapshot of a sleeping machine cannot be checked",
      fields: { machine: id, reason: "Input/output error" },
    });
    await shop.start(id);
    expect(record().lastBoot).toMatchObject({ kind: "resume" });
  });
});
