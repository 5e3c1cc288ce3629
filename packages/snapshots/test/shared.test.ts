/** A memory that several machines begin with: one file, of which each has a name. */
import { copyFile, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { diskFolder } from "../../platform/test/helpers/temp.ts";
import { fileNames } from "../src/names.ts";
import { MACHINE, ORIGIN, GENERATION as SEED, Sealed, SLOWLY } from "./sealed.ts";

const HEIR = "aaaaaaaaaaaaa1";
const SECOND = "aaaaaaaaaaaaa2";
const GENERATION = "01J0000000000000000000HEIR";

let sealed: Sealed;
beforeEach(async () => {
  sealed = await Sealed.make();
  // A seed has no VMM.
  await rm(join(sealed.folder, MACHINE, "memory"));
});
afterEach(() => sealed.dispose());

const folderOf = (id: string) => join(sealed.folder, id, "snapshots", id === MACHINE ? SEED : GENERATION);
const inodeOf = async (path: string) => (await stat(path)).ino;

async function beget(id: string): Promise<void> {
  await sealed.store("boot-1").inherit({
    from: folderOf(MACHINE),
    to: folderOf(id),
    heir: { machineId: id, machineVersion: ORIGIN.machineVersion },
    copy: copyFile,
    shared: true,
  });
}

/** Why a wake would not use the memory, and what it had to read for that. */
async function refusal(id: string) {
  const found = await sealed.store("boot-1").fitting(id === MACHINE ? SEED : GENERATION, { ...ORIGIN, machineId: id });
  if (typeof found === "string") return { reason: found, read: undefined };
  const damage = await found.files.damage(SLOWLY.signal);
  return { reason: damage?.reason ?? (await found.files.flaw()), read: damage?.why };
}

test("heirs have the seed's file, and nobody reads all of it again because others come and go", async () => {
  await Promise.all([beget(HEIR), beget(SECOND)]);
  expect(await inodeOf(join(folderOf(HEIR), "memory"))).toBe(await inodeOf(sealed.path("memory")));
  await rm(join(sealed.folder, SECOND), { recursive: true });
  const whole = { reason: undefined, read: undefined };
  expect(await refusal(HEIR)).toEqual(whole);
  expect(await refusal(MACHINE)).toEqual(whole);
  expect(await sealed.store("boot-1").flawToInherit(folderOf(MACHINE), SLOWLY.signal)).toBeUndefined();
});

test("damage is found by each of them", async () => {
  await beget(HEIR);
  await sealed.flip("memory", 8 * (2 * 1024 * 1024 + 5));
  for (const id of [HEIR, MACHINE])
    expect(await refusal(id)).toEqual({
      reason: "snapshot_corrupt: the memory file has changed, in MiB 3 of 4",
      read: "it was written to",
    });
});

test("a memory is shared for as long as someone else has a name for it", async () => {
  await beget(HEIR);
  await beget(SECOND);
  const store = sealed.store("boot-1");
  expect(await store.stage(HEIR, GENERATION)).toEqual({ shared: true });
  await rm(join(sealed.folder, MACHINE), { recursive: true });
  expect(await store.stage(HEIR, GENERATION), "the template is gone, and a sibling is not").toEqual({ shared: true });
  // The sibling runs, has a memory of its own, and still reads the one that it began with.
  await rm(folderOf(SECOND), { recursive: true });
  expect(await store.stage(SECOND, GENERATION).catch(() => "gone")).toBe("gone");
  await rm(join(sealed.folder, SECOND), { recursive: true });
  expect(await store.stage(HEIR, GENERATION), "nobody else is left").toEqual({ shared: false });
});

test("a file system that does not count names is not trusted with a memory", async () => {
  const uncounted = vi.spyOn(fileNames, "count").mockResolvedValue(1);
  try {
    await beget(HEIR);
    expect(await inodeOf(join(folderOf(HEIR), "memory"))).not.toBe(await inodeOf(sealed.path("memory")));
    const store = sealed.store("boot-1");
    expect(await store.stage(HEIR, GENERATION), "nobody knows who has it, too").toEqual({ shared: true });
  } finally {
    uncounted.mockRestore();
  }
});

test("a fork's memory is not read again because others come and go, whenever it was sealed", async () => {
  await rm(sealed.path("seal.json"));
  await beget(HEIR);
  await beget(SECOND);
  await sealed.store("boot-1").sealIn(folderOf(HEIR), HEIR, SLOWLY.signal);
  await rm(join(sealed.folder, MACHINE), { recursive: true });
  expect(await refusal(HEIR)).toEqual({ reason: undefined, read: undefined });
});

test("a VMM that has to write gets a copy, and what earlier ones left goes", async () => {
  await beget(HEIR);
  const store = sealed.store("boot-1");
  const memory = join(sealed.folder, HEIR, "memory");
  for (const left of ["own", "lent"]) await writeFile(`${memory}.${left}`, "left");
  await store.stage(HEIR, GENERATION);
  await store.stageCopy(HEIR, SLOWLY.signal);
  expect(await inodeOf(memory)).not.toBe(await inodeOf(sealed.path("memory")));
  expect(await readFile(memory)).toEqual(await readFile(sealed.path("memory")));
  for (const left of ["own", "lent"]) await expect(stat(`${memory}.${left}`)).rejects.toThrow(/ENOENT/);
});

test("where no further name can be made, the memory is copied", async () => {
  const copied: string[] = [];
  const copy = async (from: string, to: string) => {
    copied.push(from);
    await mkdir(join(to, ".."), { recursive: true });
    await copyFile(from, to);
  };
  // Another file system than the seed's cannot have a name for it.
  const elsewhere = sealed.folder.startsWith("/dev/shm") ? diskFolder() : "/dev/shm";
  const to = join(elsewhere, `hibernaut-shared-${process.pid}`, GENERATION);
  try {
    const heir = { machineId: HEIR, machineVersion: ORIGIN.machineVersion };
    await sealed.store("boot-1").inherit({ from: folderOf(MACHINE), to, heir, copy, shared: true });
    expect(copied).toContain(join(folderOf(MACHINE), "memory"));
    expect(await readFile(join(to, "memory"))).toEqual(await readFile(sealed.path("memory")));
  } finally {
    await rm(join(to, ".."), { recursive: true, force: true });
  }
});
