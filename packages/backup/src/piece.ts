/** A part of a backup: some files of the data directory as of one moment, in a directory that is laid out like it. */

export const PIECE_KINDS = [
  "layout",
  "machine",
  "volume",
  "snapshot",
  "image",
  "bundle",
  "template",
  "database",
  "files",
  "certificates",
] as const;

/** `layout` has the directories into which all others are put. */
export type PieceKind = (typeof PIECE_KINDS)[number];

/** Kinds whose content follows from their name, whenever they are copied. */
const NAMED_BY_CONTENT: ReadonlySet<PieceKind> = new Set(["snapshot", "image", "bundle", "template"]);

/** One piece. It is there until the next one is asked for. */
export interface Piece {
  kind: PieceKind;
  /** Fits into the name of a file. */
  name: string;
  /** The directory that the paths are relative to. */
  folder: string;
  paths: readonly string[];
  /**
   * The files cannot change, only the number of their links, which GNU tar takes for a change. Otherwise a change is an
   * error.
   */
  immutable: boolean;
  /** Whose files these are. Absent for what the whole platform has. */
  app?: string;
  machine?: string;
  /** Ids of volumes whose disks or snapshots are in it. */
  volumes: readonly string[];
  /**
   * Set if the files are those of the data directory themselves. It is aborted once they may have changed, also by anyone who finds
   * that they have: the piece then counts for nothing, and comes again, with copies.
   */
  lent?: AbortController;
}

/** Whether a piece of this kind and name never has to be copied twice. */
export function neverChanges({ kind }: Pick<Piece, "kind">): boolean {
  return NAMED_BY_CONTENT.has(kind);
}
