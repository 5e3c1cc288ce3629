/** Scheduled snapshots of volumes, on the fake hypervisor, with a clock that the test moves. */
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { shopForEach } from "../../machines/test/shop.ts";
import { FastVolumeFiles } from "../../platform/test/helpers/fake-world.ts";
import { Volumes } from "../src/open.ts";

const MOUNTS = { mounts: [{ volume: "data", path: "/data", scheduled_snapshots: true }] };
const DAY = 24 * 60 * 60_000;

/** Files that clone when a test says so, and whose copies it can hold up or make fail. */
class WatchedFiles extends FastVolumeFiles {
  clones = false;
  fault: Error | undefined;
  hold: Promise<void> | undefined;
  readonly copying = Promise.withResolvers<void>();
  override async canClone(): Promise<boolean> {
    return this.clones;
  }
  override async clone(from: string, to: string): Promise<void> {
    await super.copy(from, to);
  }
  override async copy(from: string, to: string, signal?: AbortSignal): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    this.copying.resolve();
    if (this.hold !== undefined)
      await Promise.race([
        this.hold,
        new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason as Error))),
      ]);
    await super.copy(from, to, signal);
  }
}

let files: WatchedFiles;
let volumes: Volumes;
let now: number;
let logged: string[];
let id: string;
let volumeId: string;

/** Volumes with that default for new ones. */
function open(byDefault: "auto" | "on" | "off"): Volumes {
  const note = (fields: Record<string, unknown>, message: string) =>
    void logged.push(`${message}: ${String(fields["reason"])}`);
  return new Volumes({
    store: shop.world.store,
    files,
    whilePaused: (machine, work) => shop.machines.whilePaused(machine, work),
    schedule: { intervalMs: DAY, byDefault, log: { info: note, warn: note } },
    clock: () => new Date(now),
    onTrouble: () => {},
  });
}

const shop = shopForEach({
  wrap(deps) {
    files = new WatchedFiles(shop.world.folder);
    volumes = open("off");
    return { ...deps, volumes };
  },
});
beforeEach(async () => {
  now = Date.now();
  logged = [];
  id = await shop.run(MOUNTS);
  volumeId = volumes.list("shop")[0]?.id ?? "";
});

const look = () => volumes.scheduler.look(new AbortController().signal);
const later = async (ms: number) => {
  now += ms;
  await look();
};
const taken = async () => (await volumes.listSnapshots("shop", volumeId)).length;
const schedule = () => volumes.get("shop", volumeId).schedule;
const write = (text: string) =>
  writeFile(join(shop.world.folder, "volumes", volumeId, "data.ext4"), text, { flag: "r+" });

test("a sleeping machine's volume gets one a day without being woken, unless nothing was written", async () => {
  await shop.suspend(id);
  await look();
  await later(DAY);
  expect(await taken()).toBe(1);
  expect(schedule()).toMatchObject({ latest: { at: new Date(now).toISOString() }, trouble: null });
  await later(DAY);
  expect(await taken(), "nothing was written").toBe(1);
  await write("more");
  await later(DAY);
  expect(await taken()).toBe(2);
  expect(shop.record(id).state).toBe("suspended");
  expect(shop.host.of(id)).toEqual([]);
});

test("one that was destroyed or has expired is taken again, although nothing was written", async () => {
  await shop.suspend(id);
  await later(DAY);
  const [first] = await volumes.listSnapshots("shop", volumeId);
  await volumes.destroySnapshot("shop", volumeId, first?.id ?? "");
  await later(DAY);
  expect(await taken()).toBe(1);
});

test("a running machine's volume is cloned where that is possible, and waits for its sleep elsewhere", async () => {
  await later(DAY);
  expect(await taken()).toBe(0);
  expect(schedule()?.trouble).toMatchObject({
    failures: 1,
    reason: expect.stringMatching(/is running, and .* cannot clone/),
  });
  await later(6 * 60_000);
  expect(schedule()?.trouble).toMatchObject({ failures: 2 });
  expect(logged, "said once").toHaveLength(1);
  await shop.suspend(id);
  await later(60 * 60_000);
  expect(await taken()).toBe(1);
  expect(schedule()?.trouble).toBeNull();
  await shop.start(id);
  files.clones = true;
  await later(DAY);
  expect(await taken()).toBe(2);
  expect(shop.host.guest(id)?.quiet).toBe(false);
});

test("a request does not wait for a copy: the machine starts, and the snapshot is taken later", async () => {
  await shop.suspend(id);
  files.hold = new Promise(() => {});
  const looking = later(DAY);
  await files.copying.promise;
  await shop.start(id);
  await looking;
  expect(await taken()).toBe(0);
  expect(schedule()?.trouble?.reason).toContain("its machine was started meanwhile");
  files.hold = undefined;
  await shop.suspend(id);
  await later(10 * 60_000);
  expect(await taken()).toBe(1);
});

test("a full disk is told in the log and the volume, and tried again", async () => {
  await shop.suspend(id);
  files.fault = new Error("no space left on device");
  await later(DAY);
  expect(logged).toEqual(["a scheduled snapshot could not be taken; trying again later: no space left on device"]);
  expect(await taken()).toBe(0);
  files.fault = undefined;
  await later(5 * 60_000);
  expect(await taken()).toBe(1);
});

test("expired ones are deleted when a new one is taken", async () => {
  await shop.suspend(id);
  volumes.update("shop", volumeId, { snapshotRetention: 1 });
  await later(DAY);
  const [first] = await volumes.listSnapshots("shop", volumeId);
  if (first === undefined) throw new Error("there is no snapshot");
  shop.world.store.volumes.removeSnapshot(first.id);
  shop.world.store.volumes.insertSnapshot({ ...first, createdAt: new Date(Date.now() - 2 * DAY).toISOString() });
  await write("more");
  await later(DAY);
  expect(await taken()).toBe(1);
  await expect(stat(files.snapshot(volumeId, first.id))).rejects.toThrow("ENOENT");
});

test("an update turns it off and on, and keeps the times of one that is on already", async () => {
  const before = schedule();
  now += 1000;
  expect(volumes.update("shop", volumeId, { scheduledSnapshots: true }).schedule).toEqual(before);
  expect(volumes.update("shop", volumeId, { scheduledSnapshots: false }).schedule ?? null).toBeNull();
  await shop.suspend(id);
  await later(2 * DAY);
  expect(await taken()).toBe(0);
  expect(volumes.update("shop", volumeId, { scheduledSnapshots: true, snapshotRetention: 9 })).toMatchObject({
    snapshotRetention: 9,
    schedule: { since: new Date(now).toISOString(), handledAt: null },
  });
});

test("by default, new volumes have them where files can be cloned, or as the setting says", async () => {
  const has = async (byDefault: "auto" | "on" | "off", clones: boolean) => {
    files.clones = clones;
    return ((await open(byDefault).create("shop", { name: "other" })).schedule ?? null) !== null;
  };
  expect(await has("auto", true)).toBe(true);
  expect(await has("auto", false)).toBe(false);
  expect(await has("on", false)).toBe(true);
  expect(await has("off", true)).toBe(false);
  const asked = await open("on").create("shop", { name: "other", scheduledSnapshots: false });
  expect(asked.schedule ?? null).toBeNull();
});
