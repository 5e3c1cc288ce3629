/** What a set consists of: the last that is written of it, and what makes it count. Pure. */
import { Type } from "typebox";
import { Check } from "typebox/value";
import { PIECE_KINDS, type PieceKind } from "../piece.ts";

/** Manifests of another format are not understood. */
export const MANIFEST_FORMAT = 1;
/** The name of the file in its snapshot. */
export const MANIFEST_FILE = "manifest.json";

/** The content of a piece's files, whatever the archive around it says. */
export interface ContentSum {
  sha256: string;
  /** When the latest of the files was written. RFC 3339. */
  modified: string;
}

/** A piece as it is stored. */
export interface StoredPiece {
  kind: PieceKind;
  name: string;
  /** The id of the snapshot in the repository, 64 hex digits. */
  snapshot: string;
  /** Length and SHA-256 of its tar archive. */
  bytes: number;
  sha256: string;
  app?: string;
  machine?: string;
  volumes: string[];
  /** Of a piece that never changes, so that later sets can tell whether this one is what they have. */
  content?: ContentSum;
}

/** How a set was verified before its manifest was written. */
export interface Verified {
  /** RFC 3339. */
  at: string;
  /** Whether all new pieces were read back and compared, or only the database and a part of the stored packs. */
  read: "pieces" | "sample";
}

/** One backup of a platform. */
export interface Manifest {
  format: typeof MANIFEST_FORMAT;
  /** The set's name. */
  set: string;
  /** Which platform it is of, among those that share a repository. */
  platform: string;
  /** The version of Hibernaut. */
  version: string;
  host: string;
  /** When the backup began and ended. RFC 3339. */
  at: string;
  endedAt: string;
  /** In the order in which they are extracted: of two with the same files, the later one counts. */
  pieces: StoredPiece[];
  /** Machines whose memory is not in it although they were running. */
  withoutMemory: { id: string; app: string; reason: string }[];
  /** Bytes that this set added to the repository. */
  added: number;
  verified: Verified;
}

const hex64 = Type.String({ pattern: "^[0-9a-f]{64}$" });
const text = Type.String({ maxLength: 1000 });
/** Becomes a part of a path. */
const name = Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$" });

const PieceSchema = Type.Object({
  kind: Type.Union(PIECE_KINDS.map((kind) => Type.Literal(kind))),
  name,
  snapshot: hex64,
  bytes: Type.Integer({ minimum: 1 }),
  sha256: hex64,
  app: Type.Optional(text),
  machine: Type.Optional(text),
  volumes: Type.Array(text),
  content: Type.Optional(Type.Object({ sha256: hex64, modified: text })),
});

const ManifestSchema = Type.Object({
  format: Type.Literal(MANIFEST_FORMAT),
  set: name,
  platform: name,
  version: text,
  host: text,
  at: text,
  endedAt: text,
  pieces: Type.Array(PieceSchema, { minItems: 1 }),
  withoutMemory: Type.Array(Type.Object({ id: text, app: text, reason: text })),
  added: Type.Integer({ minimum: 0 }),
  verified: Type.Object({ at: text, read: Type.Union([Type.Literal("pieces"), Type.Literal("sample")]) }),
});

/** Reads a manifest. Returns why it cannot be used, as the end of a sentence, for anything that is not one. */
export function parseManifest(json: string): Manifest | string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return "is not JSON";
  }
  const { format } = (value ?? {}) as { format?: unknown };
  if (typeof format === "number" && format > MANIFEST_FORMAT)
    return `has the format ${format}, which a newer Hibernaut wrote`;
  if (!Check(ManifestSchema, value)) return "is not a manifest";
  const manifest = value as Manifest;
  if (Number.isNaN(Date.parse(manifest.at))) return "has no time that can be read";
  if (!manifest.pieces.some(({ kind }) => kind === "database")) return "has no database";
  return manifest;
}

/** The apps in a set, sorted. */
export function appsOf({ pieces }: Pick<Manifest, "pieces">): string[] {
  return [...new Set(pieces.flatMap(({ app }) => app ?? []))].sort();
}

/** Bytes that a set restores, without compression and however little of it was new. */
export function sizeOf({ pieces }: Pick<Manifest, "pieces">): number {
  return pieces.reduce((sum, { bytes }) => sum + bytes, 0);
}
