/**
 * Kills the platform at every step of a volume's life: nothing half made is used, nothing whole is lost.
 *
 * @module-tag again
 */
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Resources } from "@hibernaut/machines";
import { afterEach, describe, expect, test } from "vitest";
import { stepsOf, untilDeath } from "../../machines/test/until-death.ts";
import { FastVolumeFiles, newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import { Volumes } from "../src/open.ts";

const TIMEOUT = { timeoutMs: 5000 };
const DATA = { ...SMALL, mounts: [{ volume: "data", path: "/data" }] };
let world: World | undefined;

afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

/** What a user was told is on a volume, and what is destroyed. */
interface Seen {
  kept: Set<string>;
  destroyed: Set<string>;
}

async function life({ machines }: Resources, volumes: Volumes, { kept, destroyed }: Seen): Promise<void> {
  const first = await volumes.create("shop", { name: "data" });
  kept.add(first.id);
  await writeFile(join(String(world?.folder), "volumes", first.id, "kept"), "");
  const { record } = await machines.create("shop", { config: DATA });
  await machines.wait("shop", record.id, ["running"], TIMEOUT);
  machines.stop("shop", record.id);
  await machines.wait("shop", record.id, ["stopped"], TIMEOUT);
  const { id: snapshotId } = await volumes.snapshot("shop", first.id);
  const copy = await volumes.create("shop", { name: "copy", snapshotId });
  kept.add(copy.id);
  volumes.extend("shop", first.id, 2);
  machines.start("shop", record.id);
  await machines.wait("shop", record.id, ["running"], TIMEOUT);
  await volumes.destroySnapshot("shop", first.id, snapshotId);
  kept.delete(copy.id);
  await volumes.destroy("shop", copy.id);
  destroyed.add(copy.id);
}

async function liveUntilDeath(mortality: Mortality): Promise<Seen> {
  world = await newWorld();
  const { folder, store } = world;
  const seen: Seen = { kept: new Set(), destroyed: new Set() };
  const files = new FastVolumeFiles(folder);
  const volumes = new Volumes(
    mortality.wrapVolumes({ store, files, whilePaused: (_id, work) => work(), onTrouble: () => {} }),
  );
  const platform = await startPlatform(world, { wrap: (deps) => mortality.wrap({ ...deps, volumes }) });
  platform.apps.create("shop");
  await untilDeath(mortality, life(platform, volumes, seen));
  return seen;
}

const rehearsal = new Mortality();
await liveUntilDeath(rehearsal);
await world?.dispose();
const steps = stepsOf(rehearsal);

test("the rehearsal covers the whole life of a volume", () => {
  expect(steps.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      "volumes.insert",
      "files.make",
      "files.copy",
      "files.grow",
      "files.remove",
      "volumes.remove",
    ]),
  );
});

describe.each(["before", "after"] as const)("killed %s", (when) => {
  test.each(steps)("step $step, $name", async ({ step }) => {
    const { kept, destroyed } = await liveUntilDeath(new Mortality(step, when));
    if (world === undefined) throw new Error("no world");
    const { folder, store } = world;
    const platform = await startPlatform(world);
    const { machines } = platform;
    try {
      const records = store.volumes.list();
      const ids = records.map(({ id }) => id);
      expect(records.every(({ state }) => state === "created")).toBe(true);
      for (const id of kept) expect(ids).toContain(id);
      for (const id of destroyed) expect(ids).not.toContain(id);
      expect(new Set(await readdir(join(folder, "volumes")).catch(() => []))).toEqual(new Set(ids));
      for (const { id, name } of records) {
        expect(existsSync(join(folder, "volumes", id, "data.ext4"))).toBe(true);
        expect(existsSync(join(folder, "volumes", id, "data.ext4.new"))).toBe(false);
        const snapshots = store.volumes.listSnapshots(id);
        expect(snapshots.every(({ state }) => state === "created")).toBe(true);
        const there = new Set(await readdir(join(folder, "volumes", id, "snapshots")).catch(() => []));
        expect(there).toEqual(new Set(snapshots.map((snapshot) => `${snapshot.id}.ext4`)));
        if (name === "data" && kept.has(id)) expect(existsSync(join(folder, "volumes", id, "kept"))).toBe(true);
      }
      for (const { id } of store.machines.list()) {
        await machines.wait("shop", id, ["settled"], TIMEOUT);
        machines.start("shop", id);
        await machines.wait("shop", id, ["running"], TIMEOUT);
      }
    } finally {
      await platform.close();
    }
  });
});
