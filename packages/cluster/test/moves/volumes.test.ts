/** Machines move with their volumes: all of a volume is on one host, whichever host is killed at whichever step. */
import { existsSync } from "node:fs";
import { mkdir, open, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import { describe, expect, test, vi } from "vitest";
import { giveTo, ownerIn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import type { TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { stepsOfMove } from "../../../platform/test/helpers/move-steps.ts";
import { KEYS } from "../../src/keys.ts";
import type { MoveProgress } from "../../src/moves/source.ts";
import {
  arriving,
  asleep,
  evacuatedFrom,
  fakeHosts,
  killBefore,
  machines,
  move,
  quarantined,
  volumes,
  WITH_DATA,
  WITH_VOLUMES,
} from "../fake-hosts.ts";

const GB = 1024 ** 3;
/** Where the data is on the disk, which is empty elsewhere. */
const OFFSET = GB / 2;
const NOTE = "an order that must not be lost";

const disk = ({ world: { folder } }: TestHost, volume: string) => join(folder, "volumes", volume, "data.ext4");

async function noteOn(host: TestHost, volume: string): Promise<string> {
  await using file = await open(disk(host, volume), "r");
  const { buffer } = await file.read(Buffer.alloc(NOTE.length), 0, NOTE.length, OFFSET);
  return buffer.toString();
}

/** A sleeping machine on the host, with a volume that has something on it and a snapshot of that. */
async function withVolume(host: TestHost) {
  const machine = await asleep(host, WITH_DATA);
  const [volume = ""] = volumes(host);
  {
    await using file = await open(disk(host, volume), "r+");
    await file.write(NOTE, OFFSET);
  }
  const { id: snapshot } = await host.platform.volumes.snapshot("shop", volume);
  return { ...machine, volume, snapshot };
}

describe("a machine with a volume", () => {
  test("is refused without being asked for, with the volume's size and what to do", async () => {
    const { a } = await fakeHosts("a", "b");
    const { id, volume } = await withVolume(a);
    await expect(move(a, { id, to: "b" })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(
        new RegExp(`data \\(${volume}, 1 GB, of which 1 MB are to be copied with 1 snapshot\\).*--with-volumes`),
      ),
    });
    expect([machines(a), volumes(a)]).toEqual([[id], [volume]]);
  });

  test("takes it along, sparse and with its snapshots, and the old host has it no longer", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id, nonce, volume, snapshot } = await withVolume(a);
    const before = a.platform.volumes.get("shop", volume);
    await move(a, { id, to: "b", ...WITH_VOLUMES });
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
    const { world, a, b } = await fakeHosts("a", "b");
    const { id, nonce, volume } = await withVolume(a);
    await move(a, { id, to: "b", ...WITH_VOLUMES });
    await move(b, { id, to: "a", ...WITH_VOLUMES });
    expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 3 });
    expect([volumes(a), volumes(b)]).toEqual([[volume], []]);
    await a.restart();
    await b.restart();
    expect([volumes(a), volumes(b)]).toEqual([[volume], []]);
    expect(await noteOn(a, volume)).toBe(NOTE);
    expect(await wakeOn(a, id)).toBe(nonce);
  });

  test("keeps the volume as it is while it moves", async () => {
    const { a } = await fakeHosts("a", "b");
    const { id, volume, snapshot } = await withVolume(a);
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
    await move(a, { id, to: "b", ...WITH_VOLUMES, onProgress });
    for (const error of await Promise.all(refused))
      expect(error).toMatchObject({ code: "aborted", message: expect.stringContaining("being moved to another host") });
    expect(refused).toHaveLength(3);
  });

  test("is not moved to a host whose disk has no room, before anything is copied", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, volume } = await withVolume(a);
    const reason = "disk_full: its disk has 1 MB free, and the volumes need 2 MB";
    const full = vi.spyOn(b.platform.volumes.travel, "unfit").mockResolvedValue(reason);
    await expect(move(a, { id, to: "b", ...WITH_VOLUMES })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining(`with its volumes: ${reason}. It stays where it was.`),
    });
    expect(full).toHaveBeenCalledOnce();
    expect([volumes(a), volumes(b)]).toEqual([[volume], []]);
  });

  test("is not moved to a host that has unknown files in the volume's place, which stay as they are", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, volume } = await withVolume(a);
    await mkdir(join(b.world.folder, "volumes", volume), { recursive: true });
    await writeFile(disk(b, volume), "of a database that was lost");
    await expect(move(a, { id, to: "b", ...WITH_VOLUMES })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("files that its database does not know"),
    });
    expect(await readFile(disk(b, volume), "utf8")).toBe("of a database that was lost");
    expect(volumes(a)).toEqual([volume]);
  });

  test("that is given up otherwise leaves the volume where it is", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id, volume } = await withVolume(a);
    await giveTo(world, { id, host: "b", evacuated: evacuatedFrom("a") });
    await vi.waitFor(() => expect(machines(a)).toEqual([]), 5000);
    expect(a.platform.volumes.get("shop", volume).machineId).toBeNull();
    expect(await noteOn(a, volume)).toBe(NOTE);
    await b.stop();
  });

  test("that has left a host for good is not found there again once it is destroyed", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id, volume } = await withVolume(a);
    await killBefore(a, "custody.takeAway", () => move(a, { id, to: "b", ...WITH_VOLUMES }));
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

const steps = await stepsOfMove(withVolume, WITH_VOLUMES);

test("the rehearsal has the announcement, the commit, and each step of machine and volume at both ends", () => {
  expect(steps.map(({ who, name }) => `${who} ${name}`)).toEqual(
    expect.arrayContaining([
      "a directory.transact",
      "b directory.transact",
      "b custody.takeIn",
      "a custody.takeAway",
      "b travel.place",
      "b store.together",
      "a travel.removeFiles",
      "a store.together",
    ]),
  );
});

describe.each(["before", "after"] as const)("killed %s", (when) => {
  test.each(steps.filter((step) => step.when === when))(
    "$name of host $who ($passing before): machine and volume are on one host, whole",
    // After one step is mostly before the next.
    { ...(when === "after" && { tags: "again" }) },
    dieDuringMove,
  );
});

/** Kills one of the two hosts at this step of a move, and sees what became of machine and volume. */
async function dieDuringMove({ who, when, name, passing }: (typeof steps)[number]): Promise<void> {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce, volume, snapshot } = await withVolume(a);
  const mortality = new Mortality();
  await world.host(who).restart({ mortality });
  mortality.arm(name, when, { passing });
  const moved = move(a, { id, to: "b", ...WITH_VOLUMES }).catch(() => {});
  await Promise.race([mortality.death.promise, moved]);
  expect(mortality.dead).toBe(true);
  if (who === "b") await moved;
  await world.host(who).restart();
  const owner = await vi.waitFor(async () => {
    expect((await world.directory.list(KEYS.moves)).entries).toEqual([]);
    expect(await arriving(b)).toEqual([]);
    const found = await ownerIn(world, id);
    const here = found?.host === "a";
    expect(found?.epoch).toBe(here ? 1 : 2);
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
}
