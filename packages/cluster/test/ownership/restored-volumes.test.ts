/** The cluster's directory was restored from an older backup: of a volume, the newest copy is kept, and no other is used. */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test, vi } from "vitest";
import {
  giveTo,
  ownerIn,
  putToSleep,
  restoreDirectory,
  runOn,
} from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { KEYS, type VolumeOwner } from "../../src/keys.ts";
import { volumeKey } from "../../src/ownership/volumes.ts";

/** For what waits for the next try of a host, which is seconds away. */
const TRIES = { timeout: 20_000, interval: 50 };
const WITH_VOLUMES = { cold: false, withVolumes: true };
let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

const backup = async () => (await world.directory.list("/hib/")).entries;
const withData = (volume: string) => ({ ...SMALL, mounts: [{ volume, path: "/data" }] });
const machines = ({ platform }: TestHost) => platform.machines.list("shop").map(({ record }) => record.id);
const volumes = ({ platform }: TestHost) => platform.volumes.list("shop").map(({ id }) => id);
const disk = ({ world: { folder } }: TestHost, volume: string) => join(folder, "volumes", volume, "data.ext4");
const quarantined = ({ world: { folder } }: TestHost) => readdir(join(folder, "quarantine")).catch((): string[] => []);

/** A sleeping machine on the host, with a volume. */
async function asleep(host: TestHost): Promise<{ id: string; volume: string }> {
  const { id } = await runOn(host, withData("data"));
  await putToSleep(host, id);
  const [volume = ""] = volumes(host);
  return { id, volume };
}

test("a volume that came back since, and has another machine now, stays when that machine leaves without it", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, volume } = await asleep(a);
  await a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never());
  const before = await backup();
  await b.moves.source.move(id, { to: "a", ...WITH_VOLUMES }, never());
  a.platform.machines.destroy("shop", id);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toBeUndefined(), TRIES);
  const { record } = await a.platform.machines.create("shop", {
    ...{ name: "two", config: withData(volume), skipLaunch: true },
  });
  await restoreDirectory(world, before);
  await vi.waitFor(async () => expect(await ownerIn(world, record.id)).toMatchObject({ host: "a" }), TRIES);
  await giveTo(world, { id: record.id, host: "b", evacuated: { from: "a", at: new Date().toISOString(), ran: false } });
  await vi.waitFor(() => expect(machines(a)).toEqual([]), TRIES);
  expect(volumes(a)).toEqual([volume]);
  expect(existsSync(disk(a, volume))).toBe(true);
  expect(await quarantined(a)).toEqual([`${record.id}-1`]);
});

/**
 * A machine that moved from a to b with its volume, while a kept its own copies of both; the directory is older than the move.
 * The older copy counts, and the newer one is disputed.
 */
async function disputedWithVolume(
  meanwhile: (b: TestHost, id: string) => Promise<unknown> = async () => {},
): Promise<{ id: string; volume: string; a: TestHost; b: TestHost }> {
  world = await newClusterWorld(["a", "b", "c"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, volume } = await asleep(a);
  const before = await backup();
  const mortality = new Mortality();
  await a.restart({ mortality });
  mortality.arm("custody.takeAway", "before");
  await Promise.race([
    a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never()).catch(() => {}),
    mortality.death.promise,
  ]);
  await vi.waitFor(() => expect(machines(b)).toEqual([id]), TRIES);
  await meanwhile(b, id);
  await restoreDirectory(world, before);
  await a.restart();
  await vi.waitFor(() => expect(b.ownership.disputes.list()).toHaveLength(1), TRIES);
  return { id, volume, a, b };
}

test("a volume that the older copy of a machine leaves behind is outdated: no machine gets it, and it can be deleted", async () => {
  const { id, volume, a, b } = await disputedWithVolume();
  a.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b" }), TRIES);
  await vi.waitFor(() => expect(a.platform.volumes.list("shop")).toMatchObject([{ id: volume, newerOn: "b" }]), TRIES);
  expect(b.platform.volumes.list("shop")).toMatchObject([{ id: volume, machineId: id }]);
  expect(b.platform.volumes.list("shop")[0]).not.toHaveProperty("newerOn");
  // Not by its id, nor by its name, for which an empty one would be made otherwise.
  for (const word of [volume, "data"]) {
    const created = a.platform.machines.create("shop", { config: withData(word), skipLaunch: true });
    await expect(created).rejects.toThrow(/is outdated, and host b has a newer copy.*volumes destroy/);
  }
  expect(volumes(a)).toEqual([volume]);
  await a.platform.volumes.destroy("shop", volume);
  expect(volumes(a)).not.toContain(volume);
  expect(existsSync(disk(b, volume))).toBe(true);
  // The newer one stays what it is when its machine is gone.
  await vi.waitFor(() => expect(b.ownership.disputes.list()).toEqual([]), TRIES);
  b.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(() => expect(machines(b)).toEqual([]), TRIES);
  const next = await b.platform.machines.create("shop", { config: withData("data"), skipLaunch: true });
  expect(next.record.config.mounts?.[0]?.volume).toBe(volume);
});

test.each([
  [
    "was destroyed",
    async (b: TestHost, id: string, volume: string) => {
      b.platform.machines.destroy("shop", id, { force: true });
      await vi.waitFor(() => expect(machines(b)).toEqual([]), TRIES);
      await b.platform.volumes.destroy("shop", volume);
    },
  ],
  [
    "is on a host that was removed from the cluster",
    async () => void (await world.directory.transact([], [{ key: `${KEYS.members}b`, value: null }])),
  ],
])("an outdated volume is one to use again once the newer one %s", async (_what, goes) => {
  const { id, volume, a, b } = await disputedWithVolume();
  a.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(() => expect(a.platform.volumes.list("shop")).toMatchObject([{ id: volume, newerOn: "b" }]), TRIES);
  await vi.waitFor(() => expect(b.ownership.disputes.list()).toEqual([]), TRIES);
  await goes(b, id, volume);
  await vi.waitFor(() => expect(a.platform.volumes.list("shop")[0]).not.toHaveProperty("newerOn"), TRIES);
  const created = await a.platform.machines.create("shop", { config: withData("data"), skipLaunch: true });
  expect(created.record.config.mounts?.[0]?.volume).toBe(volume);
});

test("a disputed copy that is given up takes its volumes to quarantine, and the others stay what they are", async () => {
  const { id, volume, a, b } = await disputedWithVolume();
  await b.machines.drop(id, never());
  expect(volumes(b)).toEqual([]);
  expect((await quarantined(b)).toSorted()).toEqual([`${id}-2`, `${volume}-2`].toSorted());
  expect(a.platform.volumes.list("shop")).toMatchObject([{ id: volume, machineId: id }]);
  a.platform.machines.start("shop", id);
  await a.platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
});

test("a volume that was added since stays when the copy is given up: the other host has none of it", async () => {
  const { id, volume, a, b } = await disputedWithVolume(async ({ platform }, moved) => {
    const { config } = platform.machines.get("shop", moved).record;
    const mounts = [...(config.mounts ?? []), { volume: "added", path: "/added" }];
    await platform.machines.update("shop", moved, { ...config, mounts });
    await vi.waitFor(() => expect(platform.machines.get("shop", moved).record.state).toBe("suspended"), TRIES);
  });
  const [added = ""] = volumes(b).filter((each) => each !== volume);
  await b.machines.drop(id, never());
  expect(volumes(b)).toEqual([added]);
  expect(b.platform.volumes.list("shop")).toMatchObject([{ id: added, machineId: null }]);
  expect(existsSync(disk(b, added))).toBe(true);
  expect(await quarantined(b)).toContain(`${volume}-2`);
  expect(volumes(a)).toEqual([volume]);
});

test("a volume that became newer by a claim than any other copy stays so when it moves on", async () => {
  const { id, volume, a, b } = await disputedWithVolume();
  const c = world.host("c");
  const epochIn = async () => {
    const entry = await world.directory.get(volumeKey("shop", volume));
    return (JSON.parse(entry?.value ?? "{}") as Partial<VolumeOwner>).epoch;
  };
  await a.moves.source.move(id, { to: "c", ...WITH_VOLUMES }, never());
  await c.moves.source.move(id, { to: "a", ...WITH_VOLUMES }, never());
  expect(await epochIn()).toBe(2);
  a.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(() => expect(b.ownership.disputes.list()).toEqual([]), TRIES);
  await vi.waitFor(() => expect(b.platform.custody.volumes(id)).toEqual([{ id: volume, epoch: 3 }]), TRIES);
  await b.moves.source.move(id, { to: "c", ...WITH_VOLUMES }, never());
  expect(await epochIn()).toBe(4);
});
