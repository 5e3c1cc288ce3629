/** Machines move with their volumes: all of a volume is on one host, whichever host is killed at whichever step. */
import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import { afterEach, describe, expect, test, vi } from "vitest";
import { giveTo, ownerIn, putToSleep, runOn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { stepsOfMove } from "../../../platform/test/helpers/move-steps.ts";
import { KEYS } from "../../src/keys.ts";
import type { MoveProgress } from "../../src/moves/source.ts";

const GB = 1024 ** 3;
/** Where the data is on the disk, which is empty elsewhere. */
const OFFSET = GB / 2;
const NOTE = "an order that must not be lost";
const WITH_DATA = { ...SMALL, mounts: [{ volume: "data", path: "/data" }] };
const WITH_VOLUMES = { cold: false, withVolumes: true };

let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

const disk = ({ world: { folder } }: TestHost, volume: string) => join(folder, "volumes", volume, "data.ext4");
const volumes = ({ platform }: TestHost) => platform.volumes.list("shop").map(({ id }) => id);
const machines = ({ platform }: TestHost) => platform.machines.list("shop").map(({ record }) => record.id);
const quarantined = ({ world: { folder } }: TestHost) => readdir(join(folder, "quarantine")).catch((): string[] => []);

async function noteOn(host: TestHost, volume: string): Promise<string> {
  await using file = await open(disk(host, volume), "r");
  const { buffer } = await file.read(Buffer.alloc(NOTE.length), 0, NOTE.length, OFFSET);
  return buffer.toString();
}

/** A sleeping machine on the host, with a volume that has something on it and a snapshot of that. */
async function asleep(host: TestHost): Promise<{ id: string; nonce: string; volume: string; snapshot: string }> {
  const { id, nonce } = await runOn(host, WITH_DATA);
  await putToSleep(host, id);
  const [volume = ""] = volumes(host);
  {
    await using file = await open(disk(host, volume), "r+");
    await file.write(NOTE, OFFSET);
  }
  const { id: snapshot } = await host.platform.volumes.snapshot("shop", volume);
  return { id, nonce, volume, snapshot };
}

describe("a machine with a volume", () => {
  test("is refused without being asked for, with the volume's size and what to do", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const { id, volume } = await asleep(a);
    await expect(a.moves.source.move(id, { to: "b", cold: false }, never())).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(
        new RegExp(`data \\(${volume}, 1 GB, of which 1 MB are to be copied with 1 snapshot\\).*--with-volumes`),
      ),
    });
    expect([machines(a), volumes(a)]).toEqual([[id], [volume]]);
  });

  test("takes it along, sparse and with its snapshots, and the old host has it no longer", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce, volume, snapshot } = await asleep(a);
    const before = a.platform.volumes.get("shop", volume);
    await a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never());
    expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 });
    expect([volumes(a), volumes(b)]).toEqual([[], [volume]]);
    expect(b.platform.volumes.get("shop", volume)).toEqual({ ...before, machineId: id, epoch: 1 });
    expect(await noteOn(b, volume)).toBe(NOTE);
    const found = await stat(disk(b, volume));
    expect([found.size, allocatedBytes(found) < GB / 100]).toEqual([GB, true]);
    expect(await b.platform.volumes.listSnapshots("shop", volume)).toMatchObject([{ id: snapshot, state: "created" }]);
    const copy = await b.platform.volumes.create("shop", { name: "copy", snapshotId: snapshot });
    expect(await noteOn(b, copy.id)).toBe(NOTE);
    expect(existsSync(join(a.world.folder, "volumes", volume))).toBe(false);
    expect(await quarantined(a)).toEqual([]);
    expect(await wakeOn(b, id)).toBe(nonce);
  });

  test("goes there and back again, and leaves nothing behind", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce, volume } = await asleep(a);
    await a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never());
    await b.moves.source.move(id, { to: "a", ...WITH_VOLUMES }, never());
    expect([volumes(a), volumes(b)]).toEqual([[volume], []]);
    await a.restart();
    await b.restart();
    expect([volumes(a), volumes(b)]).toEqual([[volume], []]);
    expect(await noteOn(a, volume)).toBe(NOTE);
    expect(await wakeOn(a, id)).toBe(nonce);
  });

  test("keeps the volume as it is while it moves", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const { id, volume, snapshot } = await asleep(a);
    const refused: Promise<unknown>[] = [];
    const onProgress = ({ step }: MoveProgress) => {
      if (step !== "copy" || refused.length > 0) return;
      const service = a.platform.volumes;
      const attempts = [
        async () => service.extend("shop", volume, 2),
        () => service.snapshot("shop", volume),
        () => service.destroySnapshot("shop", volume, snapshot),
      ];
      refused.push(...attempts.map((attempt) => attempt().catch((error: unknown) => error)));
    };
    await a.moves.source.move(id, { to: "b", ...WITH_VOLUMES, onProgress }, never());
    for (const error of await Promise.all(refused))
      expect(error).toMatchObject({ code: "aborted", message: expect.stringContaining("being moved to another host") });
    expect(refused).toHaveLength(3);
  });

  test("is not moved to a host whose disk has no room, before anything is copied", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, volume } = await asleep(a);
    const reason = "disk_full: its disk has 1 MB free, and the volumes need 2 MB";
    const full = vi.spyOn(b.platform.volumes.travel, "unfit").mockResolvedValue(reason);
    await expect(a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never())).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining(`with its volumes: ${reason}. It stays where it was.`),
    });
    expect(full).toHaveBeenCalledOnce();
    expect([volumes(a), volumes(b)]).toEqual([[volume], []]);
  });

  test("is not moved to a host that has unknown files in the volume's place, which stay as they are", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, volume } = await asleep(a);
    await mkdir(join(b.world.folder, "volumes", volume), { recursive: true });
    await writeFile(disk(b, volume), "of a database that was lost");
    await expect(a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never())).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("files that its database does not know"),
    });
    expect(await readFile(disk(b, volume), "utf8")).toBe("of a database that was lost");
    expect(volumes(a)).toEqual([volume]);
  });

  test("that is given up otherwise leaves the volume where it is", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, volume } = await asleep(a);
    await giveTo(world, { id, host: "b", evacuated: { from: "a", at: new Date().toISOString(), ran: false } });
    await vi.waitFor(() => expect(machines(a)).toEqual([]), 5000);
    expect(a.platform.volumes.get("shop", volume).machineId).toBeNull();
    expect(await noteOn(a, volume)).toBe(NOTE);
    await b.stop();
  });

  test("that has left a host for good is not found there again once it is destroyed", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, volume } = await asleep(a);
    const mortality = new Mortality();
    await a.restart({ mortality });
    mortality.arm("custody.takeAway", "before");
    void a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never()).catch(() => {});
    await mortality.death.promise;
    await vi.waitFor(() => expect(volumes(b)).toEqual([volume]), 5000);
    b.platform.machines.destroy("shop", id);
    await vi.waitFor(async () => expect(await ownerIn(world, id)).toBeUndefined(), 5000);
    await b.platform.volumes.destroy("shop", volume);
    await a.restart();
    expect([machines(a), volumes(a)]).toEqual([[], []]);
    expect(await quarantined(a)).toEqual([`${id}-1`, `${volume}-1`].toSorted());
    expect(existsSync(disk(a, volume))).toBe(false);
  });
});

const steps = await stepsOfMove(asleep, WITH_VOLUMES);

test("the rehearsal has the commit, and each step of the volume at both ends", () => {
  expect(steps.map(({ who, name }) => `${who} ${name}`)).toEqual(
    expect.arrayContaining([
      "b directory.transact",
      "b travel.place",
      "b store.together",
      "a travel.removeFiles",
      "a store.together",
    ]),
  );
});

describe("killed", () => {
  test.each(steps)("host $who $when $name ($passing before): the volume is on one host, whole", async (step) => {
    const { who, when, name, passing } = step;
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce, volume, snapshot } = await asleep(a);
    const mortality = new Mortality();
    await world.host(who).restart({ mortality });
    mortality.arm(name, when, { passing });
    const moved = a.moves.source.move(id, { to: "b", ...WITH_VOLUMES }, never()).catch(() => {});
    await Promise.race([mortality.death.promise, moved]);
    expect(mortality.dead).toBe(true);
    if (who === "b") await moved;
    await world.host(who).restart();
    const owner = await vi.waitFor(async () => {
      expect((await world.directory.list(KEYS.moves)).entries).toEqual([]);
      expect(await readdir(join(b.world.folder, "incoming")).catch(() => [])).toEqual([]);
      const found = await ownerIn(world, id);
      const here = found?.host === "a";
      expect([machines(a), machines(b)]).toEqual(here ? [[id], []] : [[], [id]]);
      expect([volumes(a), volumes(b)]).toEqual(here ? [[volume], []] : [[], [volume]]);
      return world.host(found?.host ?? "");
    }, 5000);
    expect(owner.platform.volumes.get("shop", volume).machineId).toBe(id);
    expect(await noteOn(owner, volume)).toBe(NOTE);
    expect(await owner.platform.volumes.listSnapshots("shop", volume)).toMatchObject([{ id: snapshot }]);
    const other = owner === a ? b : a;
    // Nobody is told to delete what is about to be taken in.
    const told = [a, b].flatMap(({ world: { logged } }) => logged.map(({ message }) => message));
    expect(told.filter((message) => message.includes("the database does not know"))).toEqual([]);
    expect(existsSync(disk(other, volume))).toBe(false);
    for (const found of await quarantined(other).then((names) => names.filter((each) => each.startsWith("vol_"))))
      expect((await stat(join(other.world.folder, "quarantine", found, "data.ext4"))).size).toBe(GB);
    expect(await wakeOn(owner, id)).toBe(nonce);
    expect(world.mostPerMachine).toBe(1);
  });
});
