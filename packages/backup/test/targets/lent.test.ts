/** What nobody writes to is read where it is, without a copy, and copied only if that changes meanwhile. */
import { appendFile, lstat, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  startPlatform,
  type World,
} from "../../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { FilesChanged, tarOf } from "../../src/archive.ts";
import type { Piece } from "../../src/piece.ts";
import { Stage } from "../../src/stage.ts";
import type { PieceSums } from "../../src/targets/piece-sums.ts";
import type { Repository } from "../../src/targets/repository.ts";
import { SetWriter } from "../../src/targets/set-writer.ts";
import { patient, volumePiece } from "./helpers.ts";

const TIMEOUT = { timeoutMs: 5000 };

let world: World;
let platform: FakePlatform;
beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

/** Makes a backup, and returns which pieces of one kind came, and whether they were lent. */
async function lentOf(kind: Piece["kind"], during: (piece: Piece) => Promise<void>): Promise<boolean[]> {
  const seen: boolean[] = [];
  const take = async (piece: Piece) => {
    if (piece.kind !== kind) return;
    seen.push(piece.lent !== undefined);
    await during(piece);
  };
  await platform.backups.each({ take, finish: async () => {}, signal: patient() });
  return seen;
}

async function sleepingMachine(): Promise<string> {
  const id = await runningMachine(platform);
  platform.machines.suspend("shop", id);
  await platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
  return id;
}

test("a machine that sleeps takes no room in a backup, and sleeps on", async () => {
  const id = await sleepingMachine();
  const layer = join("machines", id, "layer.ext4");
  const own = await stat(join(world.folder, layer), { bigint: true });
  const seen = await lentOf("machine", async ({ folder }) => {
    expect((await stat(join(folder, layer), { bigint: true })).ino).toBe(own.ino);
  });
  expect(seen).toEqual([true]);
  // By this time, seals know that nobody touched a file.
  expect((await stat(join(world.folder, layer), { bigint: true })).ctimeNs).toBe(own.ctimeNs);
  expect(platform.machines.get("shop", id).record.state).toBe("suspended");
});

test("one that wakes while it is read does not wait: it comes again, as of another moment", async () => {
  const id = await sleepingMachine();
  const states: string[] = [];
  const seen = await lentOf("machine", async ({ lent }) => {
    states.push(platform.machines.get("shop", id).record.state);
    if (lent === undefined) return;
    platform.machines.start("shop", id);
    await platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(lent.signal.aborted).toBe(true);
  });
  expect(seen).toEqual([true, false]);
  expect(states).toEqual(["suspended", "running"]);
});

test("one with a volume that falls asleep while it is copied is lent then", async () => {
  const id = await runningMachine(platform, { mounts: [{ volume: "data", path: "/data" }] });
  const [volume] = platform.volumes.list("shop");
  const stage = new Stage(world.folder);
  await stage.open();
  const asleep = async () => {
    platform.machines.suspend("shop", id);
    await platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
  };
  let suspending: Promise<void> | undefined;
  const copyFile: Stage["copyFile"] = async (from, to, signal) => {
    await stage.copyFile(from, to, signal);
    if (from.includes("data.ext4")) suspending ??= asleep();
  };
  const copy = await platform.machineCopies.copy(id, { ...stage.lending, copyFile }, patient());
  await suspending;
  expect(copy?.lent?.changed.signal.aborted).toBe(false);
  const disk = join(stage.folder, "volumes", volume?.id ?? "", "data.ext4");
  expect((await lstat(disk)).isSymbolicLink()).toBe(true);
  copy?.lent?.release();
});

test("a volume without a machine that is written to while it is read comes again, as a copy", async () => {
  platform.apps.create("shop");
  const { id } = await platform.volumes.create("shop", { name: "data", sizeGb: 1 });
  const disk = join("volumes", id, "data.ext4");
  await writeFile(join(world.folder, disk), Buffer.alloc(8_000_000, 1));
  const seen = await lentOf("volume", async (piece) => {
    const read = async () => {
      let first = true;
      for await (const _ of tarOf(piece, patient(), 20)) {
        if (first && piece.lent !== undefined) await appendFile(join(world.folder, disk), "more");
        first = false;
      }
    };
    if (piece.lent === undefined) return read();
    await expect(read()).rejects.toThrow(FilesChanged);
    piece.lent.abort();
  });
  expect(seen).toEqual([true, false]);
});

test("a volume that is destroyed while it is read is in no backup, which goes well", async () => {
  platform.apps.create("shop");
  const { id } = await platform.volumes.create("shop", { name: "data", sizeGb: 1 });
  const seen = await lentOf("volume", async (piece) => {
    await platform.volumes.destroy("shop", id);
    const read = async () => {
      for await (const _ of tarOf(piece, patient(), 20));
    };
    await expect(read()).rejects.toThrow(FilesChanged);
    piece.lent?.abort();
  });
  expect(seen).toEqual([true]);
});

test("of a lent piece that changes, a set has nothing, and the backup continues", async () => {
  const folder = await tempFolder("piece");
  const file = join(folder, "disk");
  await writeFile(file, Buffer.alloc(8_000_000, 1));
  const lent = new AbortController();
  const piece = volumePiece(folder);
  const store: Repository["store"] = async ({ source }) => {
    let bytes = 0;
    for await (const chunk of source) {
      if (bytes === 0) await appendFile(file, "more");
      bytes += chunk.length;
    }
    return { snapshot: "1", bytes, sha256: "", added: bytes };
  };
  const writer = new SetWriter({
    ...{ set: "s", platform: "p", version: "1", host: "h", at: "", stored: [], verify: "sample" },
    repository: { store } as Repository,
    sums: {} as PieceSums,
  });
  await writer.take({ ...piece, lent }, patient());
  expect([lent.signal.aborted, writer.added]).toEqual([true, 0]);
  // What is not lent must not change.
  await expect(writer.take(piece, patient())).rejects.toThrow("file changed as we read it");
});
