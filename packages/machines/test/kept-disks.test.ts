/** A machine that is copied runs on while its disks are, and what ends that leaves it as it was. */
import { beforeEach, expect, test } from "vitest";
import { Stage } from "../../backup/src/stage.ts";
import { KeptLost } from "../../hypervisor/src/contract.ts";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "./shop.ts";

const MOUNTS = { mounts: [{ volume: "data", path: "/data" }] };
const patient = () => new AbortController().signal;

const shop = shopForEach();
let id: string;
let stage: Stage;
beforeEach(async () => {
  const { record } = await shop.machines.create("shop", { config: { ...SMALL, ...MOUNTS } });
  id = record.id;
  await shop.reach(id, "running");
  stage = new Stage(shop.world.folder);
  await stage.open();
});

const runs = () => shop.host.of(id)[0]?.running;

/** Copies the machine. `during` is called for the copy of each file. */
function copy(during: (file: string) => Promise<void>) {
  const copyFile: Stage["copyFile"] = async (from, to, signal) => {
    await during(from);
    await stage.copyFile(from, to, signal);
  };
  const copier = {
    ...{ purpose: stage.purpose, needsMemory: false, folder: stage.folder, copyFile },
    pathOf: (file: string) => stage.pathOf(file),
    clones: async () => false,
    discard: (machine: string) => stage.discard(machine),
  };
  return shop.platform.machineCopies.copy(id, copier, patient());
}

/** Which files were copied while the guest ran. */
async function copiedWhileItRan(): Promise<Record<string, boolean | undefined>> {
  const seen: Record<string, boolean | undefined> = {};
  await copy(async (file) => {
    seen[file.split("/").at(-1) ?? ""] = runs();
  });
  return seen;
}

test("its guest is paused for its memory, and runs while its disks are copied", async () => {
  expect(await copiedWhileItRan()).toMatchObject({ memory: false, "layer.ext4": true, "data.ext4": true });
  expect([runs(), shop.host.keeping.size]).toEqual([true, 0]);
});

test("where disks cannot be kept, its guest is paused for them, too", async () => {
  shop.host.keepsDisks = false;
  expect(await copiedWhileItRan()).toMatchObject({ memory: false, "layer.ext4": false, "data.ext4": false });
  expect(runs()).toBe(true);
});

test("when what was kept is lost, it is copied once more, and paused for that: one guest ends no backup of all", async () => {
  shop.host.faults.keep = new KeptLost("the disk is full");
  const disks: (boolean | undefined)[] = [];
  const copied = await copy(async (file) => void (file.endsWith("data.ext4") && disks.push(runs())));
  expect(copied?.record.id).toBe(id);
  expect(disks, "whether it ran while the volume was copied").toEqual([true, false]);
  expect([runs(), shop.host.keeping.size]).toEqual([true, 0]);
});

test("any other fault of a copy fails it, and the machine runs on", async () => {
  shop.host.faults.keep = new Error("nobody knows");
  await expect(copy(async () => {})).rejects.toThrow("nobody knows");
  expect([runs(), shop.host.keeping.size]).toEqual([true, 0]);
});

test("it is suspended while its disks are copied, and copied as it sleeps", async () => {
  let suspended: Promise<unknown> | undefined;
  const copied = await copy(async (file) => {
    if (!file.endsWith("data.ext4") || suspended !== undefined) return;
    shop.machines.suspend("shop", id);
    suspended = shop.reach(id, "suspended");
  });
  await suspended;
  expect(copied).toMatchObject({ record: { state: "suspended" }, pausedMs: 0 });
  expect(shop.host.keeping.size).toBe(0);
});

test("one whose VMM is killed while its disks are copied starts again, and is copied then", async () => {
  let killed = false;
  const copied = await copy(async (file) => {
    if (!file.endsWith("data.ext4") || killed) return;
    killed = true;
    const [process] = shop.host.of(id);
    if (process !== undefined) shop.host.end(process.ref);
  });
  expect(copied?.record.id).toBe(id);
  expect(shop.host.keeping.size).toBe(0);
});
