/** Writes one set to a repository: pieces first, then it is verified, and the manifest makes it count. */
import { HibernautError } from "@hibernaut/domain/errors";
import { tarOf } from "../archive.ts";
import { neverChanges, type Piece } from "../piece.ts";
import type { Snapshot } from "./garbage.ts";
import { MANIFEST_FILE, MANIFEST_FORMAT, type Manifest, type StoredPiece, type Verified } from "./manifest.ts";
import type { Repository } from "./repository.ts";

/** At least this much of what is stored is read again after each backup, in bytes. */
const LEAST_SAMPLE_BYTES = 64 * 1024 ** 2;

interface SetOptions {
  repository: Repository;
  set: string;
  platform: string;
  version: string;
  host: string;
  at: string;
  /** Pieces that earlier sets of the platform stored. */
  stored: readonly StoredPiece[];
  verify: Verified["read"];
}

/** One set. */
export class SetWriter {
  readonly #options: SetOptions;
  readonly #known: Map<string, StoredPiece>;
  readonly #pieces: StoredPiece[] = [];
  /** Those of the pieces that this set stored. Their snapshots' ids are not whole before the set is verified. */
  readonly #new: StoredPiece[] = [];
  /** Bytes that the set added to the repository. */
  added = 0;

  constructor(options: SetOptions) {
    this.#options = options;
    this.#known = new Map(options.stored.filter(neverChanges).map((piece) => [piece.name, piece]));
  }

  /** Stores a piece, unless it never changes and an earlier set has it. */
  async take(piece: Piece, signal: AbortSignal): Promise<void> {
    const { repository, set, platform } = this.#options;
    const { kind, name, app, machine, volumes } = piece;
    const known = neverChanges(piece) ? this.#known.get(name) : undefined;
    if (known !== undefined) return void this.#pieces.push(known);
    const source = tarOf(piece, signal);
    const file = fileOf(piece);
    const { added, ...stored } = await repository.store({ file, set, platform, kind: "piece", source, signal });
    this.added += added;
    const entry: StoredPiece = {
      ...{ kind, name, volumes: [...volumes] },
      ...(app !== undefined && { app }),
      ...(machine !== undefined && { machine }),
      ...stored,
    };
    this.#pieces.push(entry);
    this.#new.push(entry);
  }

  /**
   * Verifies what is stored, and writes the manifest. Returns it once it was read back. Until then, the set does not count; so it
   * does not if anything about it is in doubt.
   */
  async commit(withoutMemory: Manifest["withoutMemory"], signal: AbortSignal): Promise<Manifest> {
    const { repository, verify, set, platform, version, host, at } = this.#options;
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
    const source = once(Buffer.from(`${JSON.stringify(manifest)}\n`));
    const stored = await repository.store({ file: MANIFEST_FILE, set, platform, kind: "manifest", source, signal });
    try {
      await repository.compare({ file: MANIFEST_FILE, ...stored }, signal);
      // Verifying may have taken hours.
      requireAll(this.#pieces, await repository.snapshots(signal));
    } catch (error) {
      // What is in doubt does not count. If it cannot be taken back, the backup fails nevertheless.
      await repository.forget([stored.snapshot], signal).catch(() => {});
      throw error;
    }
    return manifest;
  }

  async #verify(signal: AbortSignal): Promise<void> {
    const { repository, verify } = this.#options;
    await repository.check(verify === "pieces" ? 0 : Math.max(this.added, LEAST_SAMPLE_BYTES), signal);
    const read = verify === "pieces" ? this.#new : this.#new.filter(({ kind }) => kind === "database");
    for (const piece of read) await repository.compare({ ...piece, file: fileOf(piece) }, signal);
  }
}

/** The name of the file that a piece is stored as. */
export function fileOf({ name }: Pick<Piece, "name">): string {
  return `${name}.tar`;
}

/** The id of the snapshot that has a piece, which begins with what is known of it. */
function wholeId(piece: StoredPiece, set: string, snapshots: readonly Snapshot[]): string {
  const file = fileOf(piece);
  const found = snapshots.filter((one) => one.set === set && one.file === file && one.id.startsWith(piece.snapshot));
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
