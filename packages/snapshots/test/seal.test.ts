/** When a wake reads all of a memory, what it notices otherwise, and how a generation gets its seal. */
import { cp, mkdir, open, readFile, rename, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { fileState, readSeal, sealOf, writeSeal } from "../src/seal.ts";
import { GENERATION, MACHINE, MEMORY_BYTES, ORIGIN, Sealed, SLOWLY } from "./sealed.ts";

let sealed: Sealed;
beforeEach(async () => {
  sealed = await Sealed.make();
});
afterEach(() => sealed.dispose());

/** Bits of the memory: in a page that the last wake needed, and in one that neither it needed nor the samples cover. */
const HOT = 401 * 4096 * 8 + 5;
const COLD = 270 * 4096 * 8 + 5;

const sealFile = async () => (await readSeal(sealed.path("seal.json"))) ?? expect.fail("there is no seal");

/** Changes a bit as a bad disk does: the file system knows nothing of it. */
async function rot(bit: number): Promise<void> {
  await sealed.flip("memory", bit);
  await using memory = await open(sealed.path("memory"), "r");
  await writeSeal(sealed.path("seal.json"), { ...(await sealFile()), file: await fileState(memory, "boot-1") });
}

describe("all of the memory is read before a resume", () => {
  test("not if nobody has touched it", async () => {
    expect(await sealed.refusal("boot-1")).toEqual({ reason: undefined, read: undefined });
  });

  test("after a restart of the host", async () => {
    expect(await sealed.refusal("boot-2")).toEqual({ reason: undefined, read: "the host was restarted" });
  });

  test("if a backup of it was restored", async () => {
    await cp(sealed.path("memory"), `${sealed.path("memory")}.new`, { preserveTimestamps: true });
    await rename(`${sealed.path("memory")}.new`, sealed.path("memory"));
    expect(await sealed.refusal("boot-1")).toEqual({ reason: undefined, read: "it is another file" });
  });

  test("if it was written to, even by a program that sets its time back", async () => {
    const { mtimeMs } = await stat(sealed.path("memory"));
    await sealed.flip("memory", COLD);
    const reason = "snapshot_corrupt: the memory file has changed, in MiB 2 of 4";
    expect(await sealed.refusal("boot-1")).toEqual({ reason, read: "it was written to" });
    await utimes(sealed.path("memory"), mtimeMs / 1000, mtimeMs / 1000);
    expect((await sealed.refusal("boot-1")).reason).toBe(reason);
  });

  test("if it was truncated", async () => {
    await truncate(sealed.path("memory"), MEMORY_BYTES - 4096);
    const reason = `snapshot_corrupt: the memory file has ${MEMORY_BYTES - 4096} bytes instead of ${MEMORY_BYTES}`;
    expect((await sealed.refusal("boot-1")).reason).toBe(reason);
  });
});

describe("damage that the file system knows nothing of", () => {
  test("is found by any wake in the pages that the last wake needed", async () => {
    await rot(HOT);
    const { reason, read } = await sealed.refusal("boot-1");
    expect(reason).toBe("snapshot_corrupt: the memory file has changed, in page 300 or soon after");
    expect(read).toBeUndefined();
  });

  test("is found elsewhere by the scrubber, and by the first wake after a restart of the host", async () => {
    await rot(COLD);
    expect((await sealed.refusal("boot-1")).reason).toBeUndefined();
    const reason = "snapshot_corrupt: the memory file has changed, in MiB 2 of 4";
    expect((await sealed.refusal("boot-2")).reason).toBe(reason);
    expect(await sealed.store("boot-1").scrub(MACHINE, GENERATION, SLOWLY)).toBe(reason);
  });
});

describe("the seal", () => {
  test("is renewed by the scrubber: the next wake in this boot does not read everything again", async () => {
    expect((await sealed.refusal("boot-2")).read).toBe("the host was restarted");
    const { verified_at } = await sealFile();
    expect(await sealed.store("boot-2").scrub(MACHINE, GENERATION, SLOWLY)).toBeUndefined();
    expect(Date.parse((await sealFile()).verified_at)).toBeGreaterThanOrEqual(Date.parse(verified_at));
    expect((await sealed.refusal("boot-2")).read).toBeUndefined();
  });

  test.each(["gone", "damaged"])("that is %s costs nothing, and the scrubber makes another", async (how) => {
    if (how === "gone") await rm(sealed.path("seal.json"));
    else await sealed.flip("seal.json", 2000);
    expect(await sealed.refusal("boot-2")).toEqual({ reason: undefined, read: undefined });
    const store = sealed.store("boot-2");
    expect(await store.verifiedAt(MACHINE, GENERATION)).toBeUndefined();
    expect(await store.scrub(MACHINE, GENERATION, SLOWLY)).toBeUndefined();
    expect(await store.verifiedAt(MACHINE, GENERATION)).toBeInstanceOf(Date);
    await sealed.flip("memory", COLD);
    expect((await sealed.refusal("boot-2")).reason).toMatch(/MiB 2 of 4$/);
  });

  test("is not made any more once the machine starts", async () => {
    await rm(sealed.path("seal.json"));
    const store = sealed.store("boot-1");
    const draft = await store.draft(MACHINE, "GEN2");
    await writeFile(draft.devices, "devices");
    await store.publish(draft, ORIGIN, { createdAt: "2026-05-01T12:00:00.000Z", clockMs: 0 });
    await store.stage(MACHINE, "GEN2");
    await store.close();
    expect(await store.verifiedAt(MACHINE, "GEN2")).toBeUndefined();
    expect(sealed.trouble).toEqual([]);
  });

  test("is not made of a memory that is being written to", async () => {
    await using memory = await open(sealed.path("memory"), "r");
    const read = memory.read.bind(memory);
    vi.spyOn(memory, "read").mockImplementation(async (...given: Parameters<typeof read>) => {
      await sealed.flip("memory", COLD);
      return read(...given);
    });
    const sealing = sealOf(memory, { bootId: "boot-1", hotPages: [], now: new Date() }, SLOWLY.signal);
    await expect(sealing).rejects.toThrow("the memory was written to while it was read");
  });
});

test("files that do not belong to a generation are in nobody's way", async () => {
  const folder = join(sealed.path("memory"), "..");
  await writeFile(join(folder, "notes.txt"), "mine");
  await mkdir(join(folder, "lost+found"));
  expect((await sealed.refusal("boot-2")).reason).toBeUndefined();
  expect(await sealed.store("boot-1").scrub(MACHINE, GENERATION, SLOWLY)).toBeUndefined();
  expect(await readFile(join(folder, "notes.txt"), "utf8")).toBe("mine");
});

test.each(["manifest.json", "devices", "memory"] as const)(
  "a scrubber that cannot read the %s proves nothing: it rejects",
  async (name) => {
    // Reading a directory fails for everyone, root included.
    await rm(sealed.path(name));
    await mkdir(sealed.path(name));
    await expect(sealed.store("boot-1").scrub(MACHINE, GENERATION, SLOWLY)).rejects.toThrow(/EISDIR/);
    expect((await sealed.refusal("boot-1")).reason).toMatch(
      /^snapshot_corrupt: the (manifest|memory)|^snapshot_corrupt: a file cannot be read/,
    );
  },
);

test("a scrubber ends at once when it is aborted", async () => {
  const abort = new AbortController();
  const scrubbing = sealed.store("boot-1").scrub(MACHINE, GENERATION, { rate: 1, signal: abort.signal });
  setImmediate(() => abort.abort(new Error("the machine starts")));
  await expect(scrubbing).rejects.toThrow();
});
