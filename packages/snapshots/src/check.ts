/** Checks whether a generation's files are still what was written. */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent, isHostTrouble } from "@hibernaut/lib/absence";
import { messageOf } from "@hibernaut/lib/text";
import { fingerprint } from "./fingerprint.ts";
import type { SnapshotManifest } from "./manifest.ts";
import { type ScrubOptions, scrub } from "./scrub.ts";
import { damageIn, damageInHotPages, fileState, readSeal, type Seal, touched, writeSeal } from "./seal.ts";
import { sealFile } from "./sealer.ts";

/**
 * The files of a generation. One that the host cannot read is neither missing nor damaged: everything here rejects then, with the
 * error of the file system. Reasons begin with a stable word, `snapshot_missing: ...` or `snapshot_corrupt: ...`. */
export class GenerationFiles {
  readonly #folder: string;
  readonly #files: SnapshotManifest["files"];
  readonly #bootId: string;
  #seal: Promise<Seal | undefined> | undefined;

  constructor(folder: string, { files }: SnapshotManifest, bootId: string) {
    this.#folder = folder;
    this.#files = files;
    this.#bootId = bootId;
  }

  /**
   * Reads all of the memory if it may have changed since it was sealed: after a restart of the host, and when the file
   * was restored, replaced or written to. Otherwise it reads nothing. Resolves with what it found, or undefined. Rejects
   * when aborted.
   */
  async damage(signal: AbortSignal): Promise<{ why: string; reason: string | undefined } | undefined> {
    const seal = await this.#readSeal();
    if (seal === undefined) return undefined;
    await using memory = await open(join(this.#folder, "memory"), "r").catch(ifAbsent(undefined));
    if (memory === undefined) return { why: "it is gone", reason: "snapshot_missing: there is no memory file" };
    try {
      const why = touched(seal.file, await fileState(memory, this.#bootId), seal);
      if (why === undefined) return undefined;
      return { why, reason: corrupt(await damageIn(memory, seal, signal)) };
    } catch (error) {
      signal.throwIfAborted();
      return { why: "it cannot be read", reason: unreadable("the memory file", error) };
    }
  }

  /**
   * Checks the device state, samples of the memory, and the pages that the last wake needed. Resolves with the reason
   * when they cannot be used, and otherwise with undefined.
   */
  flaw(): Promise<string | undefined> {
    return this.#flaw().catch((error: unknown) => unreadable("a file", error));
  }

  /** Rejects when a file is there and cannot be read. */
  async #flaw(): Promise<string | undefined> {
    for (const [name, kind] of [
      ["memory", "sampled"],
      ["devices", "whole"],
    ] as const) {
      const wanted = this.#files[name];
      const found = await fingerprint(join(this.#folder, name), kind).catch(ifAbsent(undefined));
      if (found === undefined) return `snapshot_missing: there is no ${name} file`;
      if (found.size !== wanted.size)
        return corrupt(`the ${name} file has ${found.size} bytes instead of ${wanted.size}`);
      if (found.sha256 !== wanted.sha256) return corrupt(`the ${name} file has changed`);
    }
    const seal = await this.#readSeal();
    if (seal === undefined) return undefined;
    await using memory = await open(join(this.#folder, "memory"), "r");
    return corrupt(await damageInHotPages(memory, seal, NEVER));
  }

  /**
   * Reads everything from the disk, slowly. Resolves like {@link flaw}, or with `unsealed`. The seal says afterwards
   * that all is well now. Rejects when aborted, and when the disk cannot be read or written.
   */
  async scrub(options: ScrubOptions): Promise<string | undefined | Unsealed> {
    const flaw = await this.#flaw();
    if (flaw !== undefined) return flaw;
    const seal = await this.#readSeal();
    if (seal === undefined) return UNSEALED;
    const path = join(this.#folder, "memory");
    await using memory = await open(path, "r");
    const before = await fileState(memory, this.#bootId);
    const damage = await scrub(path, seal, options);
    if (damage !== undefined) return corrupt(damage);
    options.signal.throwIfAborted();
    if (touched(before, await fileState(memory, this.#bootId), seal) !== undefined) return undefined;
    await writeSeal(sealFile(this.#folder), { ...seal, verified_at: new Date().toISOString(), file: before });
    return undefined;
  }

  /** When all of the memory was read last. Undefined if the generation is not sealed. */
  async verifiedAt(): Promise<Date | undefined> {
    const seal = await this.#readSeal();
    return seal && new Date(seal.verified_at);
  }

  #readSeal(): Promise<Seal | undefined> {
    this.#seal ??= readSeal(sealFile(this.#folder));
    return this.#seal;
  }
}

/** The result for a generation without a seal: it can be sealed now. */
export const UNSEALED = Symbol("unsealed");
type Unsealed = typeof UNSEALED;

const NEVER = new AbortController().signal;

/** Says that something cannot be read and never will be. Throws the error when that is the host's fault. */
export function unreadable(what: string, error: unknown): string {
  if (isHostTrouble(error)) throw error;
  return `snapshot_corrupt: ${what} cannot be read: ${messageOf(error)}`;
}

function corrupt(what: string | undefined): string | undefined {
  return what && `snapshot_corrupt: ${what}`;
}
