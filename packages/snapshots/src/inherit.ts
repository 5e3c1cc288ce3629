/** A generation that becomes another machine's: the memory from which forks begin. */
import { link, mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { flush } from "@hibernaut/lib/durable";
import { GenerationFiles } from "./check.ts";
import { checkedJson } from "./checked-json.ts";
import { parseManifest, type SnapshotManifest } from "./manifest.ts";
import { fileNames } from "./names.ts";
import { fileState, readSeal, writeSeal } from "./seal.ts";
import { sealFile } from "./sealer.ts";

/** Whose a copy of a generation is. */
interface Heir {
  machineId: string;
  machineVersion: string;
}

interface Inheritance {
  /** Directory of the generation. Nobody writes to its files. */
  from: string;
  /** Directory that is made, and named by the generation that the copy is. */
  to: string;
  heir: Heir;
  /** Copies one file. */
  copy(from: string, to: string): Promise<void>;
  /** The memory is not copied: it is the same file, to which nobody may write from then on. */
  shared?: boolean;
}

/** Why one more link cannot be made: there are too many already, or the file system has none. */
const NO_LINK = ["EMLINK", "EPERM", "ENOTSUP", "EOPNOTSUPP", "EXDEV"];

/**
 * Says why a generation cannot be inherited, `snapshot_corrupt: ...`. Reads all of its memory if that may have changed since it
 * was sealed, and remembers that it has not.
 */
export async function flawToInherit(folder: string, bootId: string, signal: AbortSignal): Promise<string | undefined> {
  const manifest = await manifestIn(folder);
  if (typeof manifest === "string") return manifest;
  const files = new GenerationFiles(folder, manifest, bootId);
  const read = await files.damage(signal);
  const flaw = read?.reason ?? (await files.flaw());
  if (flaw === undefined && read !== undefined) await copySeal(folder, folder, bootId);
  return flaw;
}

/** What a seal says of the content of a memory file holds for a copy that has been made of it, or for the file itself. */
async function copySeal(from: string, to: string, bootId: string, shared = false): Promise<void> {
  const seal = await readSeal(sealFile(from));
  if (seal === undefined) return;
  await using memory = await open(join(to, "memory"), "r");
  const { linked, ...content } = seal;
  const isLinked = shared || (from === to && linked === true);
  await writeSeal(sealFile(to), {
    ...content,
    ...(isLinked && { linked: true }),
    file: await fileState(memory, bootId),
  });
}

/** Directories of generations whose seal is being changed: machines may be born of one at the same time. */
const allowing = new Map<string, Promise<void>>();

/** From now on, links to the memory may come and go without that it has to be read again. */
function allowLinks(folder: string, bootId: string): Promise<void> {
  const allow = async () => {
    const seal = await readSeal(sealFile(folder));
    if (seal !== undefined && seal.linked !== true) await copySeal(folder, folder, bootId, true);
  };
  const begun = allowing.get(folder) ?? allow().finally(() => allowing.delete(folder));
  allowing.set(folder, begun);
  return begun;
}

/** Gives the memory one more name. Returns whether that was possible, and is counted: the number of names is what protects it. */
async function linkMemory(from: string, to: string): Promise<boolean> {
  const name = join(to, "memory");
  try {
    await link(join(from, "memory"), name);
    if ((await fileNames.count(name)) > 1) return true;
    await rm(name);
    return false;
  } catch (error) {
    if (NO_LINK.includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

/**
 * Copies a generation for another machine, or, if its memory is `shared`, all of it but that; durable once this resolves. What the
 * manifest and the seal say of the files' content stays as it was, so that the heir's wake finds what the copy got wrong.
 */
export async function inherit({ from, to, heir, copy, shared }: Inheritance, bootId: string): Promise<void> {
  const manifest = await manifestIn(from);
  if (typeof manifest === "string") throw new Error(manifest);
  await mkdir(to, { recursive: true, mode: 0o700 });
  if (shared === true) await allowLinks(from, bootId);
  const isLinked = shared === true && (await linkMemory(from, to));
  if (!isLinked) await copy(join(from, "memory"), join(to, "memory"));
  await copy(join(from, "devices"), join(to, "devices"));
  // Also what is linked: that of a fork was copied a moment ago, and only that of a template is on the disk.
  for (const name of ["memory", "devices"]) await flush(join(to, name));
  const { format: _, machine_id: __, machine_version: ___, generation: ____, ...taken } = manifest;
  const own: SnapshotManifest = {
    format: 2,
    machine_id: heir.machineId,
    machine_version: heir.machineVersion,
    generation: basename(to),
    ...taken,
  };
  await writeFile(join(to, "manifest.json"), checkedJson(own), { mode: 0o600, flush: true });
  await copySeal(from, to, bootId, isLinked);
  await flush(to);
}

/** Returns the manifest of the generation in a directory, or why it cannot be used. Rejects when the host cannot read it. */
export async function manifestIn(folder: string): Promise<SnapshotManifest | string> {
  const text = await readFile(join(folder, "manifest.json"), "utf8").catch(ifAbsent(undefined));
  return text === undefined ? "snapshot_missing: there is no manifest" : parseManifest(text);
}
