/** The cluster's directory was restored from an older backup: of a volume, the newest copy is kept, and no other is used. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { expect, test, vi } from "vitest";
import { giveTo, ownerIn, restoreDirectory } from "../../../platform/test/helpers/cluster-machines.ts";
import type { ClusterWorld, TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { KEYS, type VolumeOwner } from "../../src/keys.ts";
import { volumeKey } from "../../src/ownership/volumes.ts";
import { deletion } from "../../src/stored.ts";
import {
  asleep,
  backupOf,
  destroy,
  disputes,
  evacuatedFrom,
  fakeHosts,
  machines,
  move,
  movedWithAnOldCopy,
  quarantined,
  recordOn,
  stateOn,
  TRIES,
  untilOwner,
  untilSettled,
  untilState,
  volumes,
  WITH_DATA,
  WITH_VOLUMES,
} from "../fake-hosts.ts";

const withVolume = (volume: string) => ({ ...WITH_DATA, mounts: [{ volume, path: "/data" }] });
const disk = ({ world: { folder } }: TestHost, volume: string) => join(folder, "volumes", volume, "data.ext4");

test("a volume that came back since, and has another machine now, stays when that machine leaves without it", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id } = await asleep(a, WITH_DATA);
  const [volume = ""] = volumes(a);
  await move(a, { id, to: "b", ...WITH_VOLUMES });
  const before = await backupOf(world);
  await move(b, { id, to: "a", ...WITH_VOLUMES });
  a.platform.machines.destroy("shop", id);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toBeUndefined(), TRIES);
  const { record } = await a.platform.machines.create("shop", {
    ...{ name: "two", config: withVolume(volume), skipLaunch: true },
  });
  await restoreDirectory(world, before);
  await untilOwner(world, record.id, { host: "a" });
  await giveTo(world, { id: record.id, host: "b", evacuated: evacuatedFrom("a") });
  await vi.waitFor(() => expect(machines(a)).toEqual([]), TRIES);
  expect(volumes(a)).toEqual([volume]);
  expect(existsSync(disk(a, volume))).toBe(true);
  expect(await quarantined(a)).toEqual([`${record.id}-1`]);
});

/**
 * A machine that moved from a to b with its volume, while a kept its own copies of both; the directory is older than the move.
 * The older copy counts, and the newer one is disputed.
 */
async function disputedWithVolume(meanwhile: (b: TestHost, id: string) => Promise<unknown> = async () => {}) {
  const { world, a, b, c } = await fakeHosts("a", "b", "c");
  const { id, before } = await movedWithAnOldCopy(world, WITH_DATA);
  const [volume = ""] = volumes(b);
  await meanwhile(b, id);
  await restoreDirectory(world, before);
  await a.restart();
  await vi.waitFor(() => expect(disputes(b)).toHaveLength(1), TRIES);
  return { world, id, volume, a, b, c };
}

/** The machine's older copy is destroyed, and leaves its volume behind. */
async function leaveOutdated() {
  const found = await disputedWithVolume();
  const { id, volume, a, b } = found;
  destroy(a, id);
  await vi.waitFor(() => expect(a.platform.volumes.list("shop")).toMatchObject([{ id: volume, newerOn: "b" }]), TRIES);
  await untilSettled(b);
  return found;
}

test("a volume that the older copy of a machine leaves behind is outdated: no machine gets it, and it can be deleted", async () => {
  const { world, id, volume, a, b } = await leaveOutdated();
  expect(await ownerIn(world, id)).toMatchObject({ host: "b" });
  expect(b.platform.volumes.list("shop")).toMatchObject([{ id: volume, machineId: id }]);
  expect(b.platform.volumes.list("shop")[0]).not.toHaveProperty("newerOn");
  // Not by its id, nor by its name, for which an empty one would be made otherwise.
  for (const word of [volume, "data"]) {
    const created = a.platform.machines.create("shop", { config: withVolume(word), skipLaunch: true });
    await expect(created).rejects.toThrow(/is outdated, and host b has a newer copy.*volumes destroy/);
  }
  expect(volumes(a)).toEqual([volume]);
  await a.platform.volumes.destroy("shop", volume);
  expect(volumes(a)).not.toContain(volume);
  expect(existsSync(disk(b, volume))).toBe(true);
  // The newer one stays what it is when its machine is gone.
  destroy(b, id);
  await vi.waitFor(() => expect(machines(b)).toEqual([]), TRIES);
  const next = await b.platform.machines.create("shop", { config: WITH_DATA, skipLaunch: true });
  expect(next.record.config.mounts?.[0]?.volume).toBe(volume);
});

test.each([
  [
    "was destroyed",
    async ({ host }: ClusterWorld, id: string, volume: string) => {
      const b = host("b");
      destroy(b, id);
      await vi.waitFor(() => expect(machines(b)).toEqual([]), TRIES);
      await b.platform.volumes.destroy("shop", volume);
    },
  ],
  [
    "is on a host that was removed from the cluster",
    ({ directory }: ClusterWorld) => directory.transact([], [deletion(`${KEYS.members}b`)]),
  ],
])("an outdated volume is one to use again once the newer one %s", async (_what, goes) => {
  const { world, id, volume, a } = await leaveOutdated();
  await goes(world, id, volume);
  await vi.waitFor(() => expect(a.platform.volumes.list("shop")[0]).not.toHaveProperty("newerOn"), TRIES);
  const created = await a.platform.machines.create("shop", { config: WITH_DATA, skipLaunch: true });
  expect(created.record.config.mounts?.[0]?.volume).toBe(volume);
});

test("a disputed copy that is given up takes its volumes to quarantine, but not one of which the other host has none", async () => {
  const { id, volume, a, b } = await disputedWithVolume(async (host, moved) => {
    const { config } = recordOn(host, moved);
    const mounts = [...(config.mounts ?? []), { volume: "added", path: "/added" }];
    await host.platform.machines.update("shop", moved, { ...config, mounts });
    await vi.waitFor(() => expect(stateOn(host, moved)).toBe("suspended"), TRIES);
  });
  const [added = ""] = volumes(b).filter((each) => each !== volume);
  await b.machines.drop(id, never());
  expect(b.platform.volumes.list("shop")).toMatchObject([{ id: added, machineId: null }]);
  expect(existsSync(disk(b, added))).toBe(true);
  expect(await quarantined(b)).toEqual([`${id}-2`, `${volume}-2`].toSorted());
  expect(a.platform.volumes.list("shop")).toMatchObject([{ id: volume, machineId: id }]);
  a.platform.machines.start("shop", id);
  await untilState(a, id, "running");
});

test("a volume that became newer by a claim than any other copy stays so when it moves on", async () => {
  const { world, id, volume, a, b, c } = await disputedWithVolume();
  const epochIn = async () => {
    const entry = await world.directory.get(volumeKey("shop", volume));
    return (JSON.parse(entry?.value ?? "{}") as Partial<VolumeOwner>).epoch;
  };
  await move(a, { id, to: "c", ...WITH_VOLUMES });
  await move(c, { id, to: "a", ...WITH_VOLUMES });
  expect(await epochIn()).toBe(2);
  destroy(a, id);
  await untilSettled(b);
  await vi.waitFor(() => expect(b.platform.custody.volumes(id)).toEqual([{ id: volume, epoch: 3 }]), TRIES);
  await move(b, { id, to: "c", ...WITH_VOLUMES });
  expect(await epochIn()).toBe(4);
});
