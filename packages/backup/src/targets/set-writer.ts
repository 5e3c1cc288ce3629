/** Writes one set to a repository: pieces first, then it is verified, and the manifest makes it count. */
import { HibernautError } from "@hibernaut/domain/errors";
import { given } from "@hibernaut/lib/given";
import { FilesChanged, tarOf } from "../archive.ts";
import { neverChanges, type Piece } from "../piece.ts";
import type { Snapshot } from "./garbage.ts";
import { type FileInPlace, filesInPlace, requireUnchanged } from "./in-place.ts";
import {
  type ContentSum,
  MANIFEST_FILE,
  MANIFEST_FORMAT,
  type Manifest,
  type StoredPiece,
  type Verified,
} from "./manifest.ts";
import type { PieceSums } from "./piece-sums.ts";
import type { Repository } from "./repository.ts";
import { type Reuse, reuseOf } from "./reuse.ts";
import { archiveOf, fileOf, isIn } from "./stored-archive.ts";

/** At least this much of what is stored is read again after each backup, in bytes. */
const LEAST_SAMPLE_BYTES = 64 * 1024 ** 2;

/** How many blocks tar writes at a time: what it reads at a time, so that a reader never stops before the end of what was stored. */
const RECORD_BLOCKS = 20;

interface SetOptions {
  repository: Repository;
  set: string;
  platform: string;
  version: string;
  host: string;
  at: string;
  /** Pieces that earlier sets of the platform stored, oldest first. */
  stored: readonly StoredPiece[];
  sums: Pick<PieceSums, "noted" | "read" | "save">;
  verify: Verified["read"];
}

/** One set. */
export class SetWriter {
  readonly #options: SetOptions;
  readonly #known: Map<string, StoredPiece[]>;
  readonly #pieces: StoredPiece[] = [];
  /** Those of the pieces that this set stored. Their snapshots' ids are not whole before the set is verified. */
  readonly #new: StoredPiece[] = [];
  /** Bytes that the set added to the repository. */
  added = 0;
  /** Names of pieces that never change, and of which an earlier set has another content. */
  readonly changed: string[] = [];

  constructor(options: SetOptions) {
    this.#options = options;
    this.#known = Map.groupBy(options.stored.filter(neverChanges), ({ name }) => name);
  }

  /**
   * Stores a piece, unless it never changes and an earlier set has just what is on the disk now. Of a lent one that changed
   * meanwhile, nothing is stored: a copy of it follows.
   */
  async take(piece: Piece, signal: AbortSignal): Promise<void> {
    const { lent } = piece;
    if (lent === undefined) return this.#store(piece, signal);
    try {
      await this.#store(piece, AbortSignal.any([signal, lent.signal]));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof FilesChanged) lent.abort(error);
      if (!lent.signal.aborted) throw error;
    }
  }

  async #store(piece: Piece, signal: AbortSignal): Promise<void> {
    const { repository, set, platform, verify } = this.#options;
    const { kind, name, app, machine, volumes } = piece;
    let content: ContentSum | undefined;
    if (neverChanges(piece)) {
      const { now, same } = await this.#compared(piece, signal);
      if (same !== undefined) return void this.#pieces.push(same);
      content = now;
    }
    const files = verify === "pieces" ? [] : await filesInPlace(piece);
    const source = tarOf({ ...piece, without: files.map(({ path }) => path) }, signal, RECORD_BLOCKS);
    const archive = await repository.store({ file: fileOf(piece), set, platform, kind: "piece", source, signal });
    const inPlace = files.length === 0 ? [] : [await this.#storeInPlace(files, signal)];
    for (const { added, ...stored } of [archive, ...inPlace]) {
      this.added += added;
      const entry: StoredPiece = {
        ...{ kind, name, volumes: [...volumes] },
        ...given({ app, machine, content }),
        ...stored,
      };
      this.#pieces.push(entry);
      this.#new.push(entry);
    }
  }

  async #storeInPlace(found: readonly FileInPlace[], signal: AbortSignal) {
    const { repository, set, platform } = this.#options;
    const files = found.map(({ look: _, ...file }) => file);
    try {
      const stored = await repository.storeInPlace({ files, set, platform, signal });
      return { ...stored, files };
    } finally {
      // What restic says of a file that goes or shrinks while it reads it is not what was wrong.
      signal.throwIfAborted();
      await requireUnchanged(found);
    }
  }

  /** Compares a piece with what earlier sets have. A note is enough to find it there, and never enough to say that it changed. */
  async #compared(piece: Piece, signal: AbortSignal): Promise<Reuse & { now: ContentSum }> {
    const { sums } = this.#options;
    const earlier = this.#known.get(piece.name) ?? [];
    const noted = await sums.noted(piece);
    const reuse = noted && reuseOf(noted, earlier);
    if (noted !== undefined && reuse?.same !== undefined && !reuse.changed) return { ...reuse, now: noted };
    const now = await sums.read(piece, signal);
    const found = reuseOf(now, earlier);
    if (found.changed) this.changed.push(piece.name);
    return { ...found, now };
  }

  /**
   * Verifies what is stored, and writes the manifest. Returns it once it was read back, with all snapshots that are there then. Until
   * then, the set does not count; so it does not if anything about it is in doubt.
   */
  async commit(
    withoutMemory: Manifest["withoutMemory"],
    signal: AbortSignal,
  ): Promise<{ manifest: Manifest; snapshots: Snapshot[] }> {
    const { repository, verify, set, platform, version, host, at, sums } = this.#options;
    await sums.save();
    // Others may have deleted snapshots meanwhile, also of earlier sets.
    const snapshots = await repository.snapshots(signal);
    for (const piece of this.#new) piece.snapshot = wholeId(piece, set, snapshots);
    requireAll(this.#pieces, snapshots);
    await this.#verify(signal);
    const now = new Date().toISOString();
    const manifest: Manifest = {
      ...{ format: MANIFEST_FORMAT, set, platform, version, host, at, endedAt: now },
      ...{ pieces: this.#pieces, withoutMemory, added: this.added },
      verified: { at: now, read: verify },
    };
    const json = `${JSON.stringify(manifest)}\n`;
    const source = once(Buffer.from(json));
    const stored = await repository.store({ file: MANIFEST_FILE, set, platform, kind: "manifest", source, signal });
    try {
      await repository.compare({ file: MANIFEST_FILE, ...stored }, signal);
      // Verifying may have taken hours.
      const present = await repository.snapshots(signal);
      requireAll(this.#pieces, present);
      const own = present.find((snapshot) => snapshot.isManifest && snapshot.set === set);
      if (own !== undefined) await repository.remember(own, json);
      return { manifest, snapshots: present };
    } catch (error) {
      // What is in doubt does not count. If it cannot be taken back, the backup fails nevertheless.
      await repository.forget([stored.snapshot], signal).catch(() => {});
      throw error;
    }
  }

  async #verify(signal: AbortSignal): Promise<void> {
    const { repository, verify } = this.#options;
    await repository.check(verify === "pieces" ? 0 : Math.max(this.added, LEAST_SAMPLE_BYTES), signal);
    const read = verify === "pieces" ? this.#new : this.#new.filter(({ kind }) => kind === "database");
    for (const piece of read) for await (const chunk of archiveOf(repository, piece, signal)) void chunk;
  }
}

/** The id of the snapshot that has a piece, which begins with what is known of it. */
function wholeId(piece: StoredPiece, set: string, snapshots: readonly Snapshot[]): string {
  const isOf = (one: Snapshot) => one.set === set && isIn(piece, one.file) && one.id.startsWith(piece.snapshot);
  const found = snapshots.filter(isOf);
  // Not there, or there twice: what is missing is reported with the others.
  return found.length === 1 ? (found[0]?.id ?? "") : "";
}

function requireAll(pieces: readonly StoredPiece[], snapshots: readonly Snapshot[]): void {
  const there = new Set(snapshots.map(({ id }) => id));
  const lost = pieces.find(({ snapshot }) => !there.has(snapshot));
  if (lost === undefined) return;
  const message = `${lost.name} was deleted from the target while the backup was made. Back up again, and let only one platform use the target with this key.`;
  throw new HibernautError("aborted", message);
}

async function* once(content: Buffer): AsyncGenerator<Buffer, void> {
  yield content;
}
