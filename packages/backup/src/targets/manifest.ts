/** What a set consists of: the last that is written of it, and what makes it count. Pure. */
import { type Static, Type } from "typebox";
import { Check } from "typebox/value";
import { PIECE_KINDS } from "../piece.ts";

/** Format 2 has pieces of files that restic read by itself. Manifests of a later format are not understood. */
export const MANIFEST_FORMAT = 2;
/** The name of the file in its snapshot. */
export const MANIFEST_FILE = "manifest.json";

const hex64 = Type.String({ pattern: "^[0-9a-f]{64}$" });
const text = Type.String({ maxLength: 1000 });
/** Becomes a part of a path. */
const name = Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$" });

const ContentSumSchema = Type.Object({
  sha256: hex64,
  /** When the latest of the files was written. RFC 3339. */
  modified: text,
});

/** A path below the data directory, never one that leads out of it. As long as the header of an archive has room for, in bytes. */
const path = Type.String({ pattern: "^(?!/)(?!(.*/)?\\.\\.?(/|$))[ -~]{1,100}$" });

const StoredFileSchema = Type.Object({
  path,
  /** Where it is in the snapshot: the path that restic read it at. */
  at: Type.String({ pattern: "^/", maxLength: 4096 }),
  bytes: Type.Integer({ minimum: 0 }),
  /** The bits of its permissions. */
  mode: Type.Integer({ minimum: 0, maximum: 0o777 }),
  /** When it was written, in seconds since 1970. */
  mtime: Type.Integer({ minimum: 0 }),
});

const PieceSchema = Type.Object({
  kind: Type.Enum(PIECE_KINDS),
  name,
  /** The id of the snapshot in the repository. */
  snapshot: hex64,
  /** The length of its tar archive, or of its files together. */
  bytes: Type.Integer({ minimum: 1 }),
  /** The SHA-256 of its tar archive. */
  sha256: Type.Optional(hex64),
  /** In place of an archive: restic read these files by itself, and its own SHA-256 of every part of them says what they are. */
  files: Type.Optional(Type.Array(StoredFileSchema, { minItems: 1 })),
  app: Type.Optional(text),
  machine: Type.Optional(text),
  volumes: Type.Array(text),
  /** Of a piece that never changes, so that later sets can tell whether this one is what they have. */
  content: Type.Optional(ContentSumSchema),
});

const VerifiedSchema = Type.Object({
  /** RFC 3339. */
  at: text,
  /** Whether all new pieces were read back and compared, or only the database and a part of the stored packs. */
  read: Type.Enum(["pieces", "sample"]),
});

const ManifestSchema = Type.Object({
  format: Type.Union([Type.Literal(1), Type.Literal(MANIFEST_FORMAT)]),
  /** The set's name. */
  set: name,
  /** Which platform it is of, among those that share a repository. */
  platform: name,
  /** The version of Hibernaut. */
  version: text,
  host: text,
  /** When the backup began and ended. RFC 3339. */
  at: text,
  endedAt: text,
  /** In the order in which they are extracted: of two with the same files, the later one counts. */
  pieces: Type.Array(PieceSchema, { minItems: 1 }),
  /** Machines whose memory is not in it although they were running. */
  withoutMemory: Type.Array(Type.Object({ id: text, app: text, reason: text })),
  /** Bytes that this set added to the repository. */
  added: Type.Integer({ minimum: 0 }),
  verified: VerifiedSchema,
});

/** The content of a piece's files, whatever the archive around it says. */
export type ContentSum = Static<typeof ContentSumSchema>;
/** A file that restic read by itself. */
export type StoredFile = Static<typeof StoredFileSchema>;
/** A piece as it is stored. */
export type StoredPiece = Static<typeof PieceSchema>;
/** How a set was verified before its manifest was written. */
export type Verified = Static<typeof VerifiedSchema>;
/** One backup of a platform. */
export type Manifest = Static<typeof ManifestSchema>;

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
  if (Number.isNaN(Date.parse(value.at))) return "has no time that can be read";
  if (!value.pieces.some(({ kind }) => kind === "database")) return "has no database";
  if (value.pieces.some(({ sha256, files }) => (sha256 === undefined) === (files === undefined)))
    return "has a piece that is neither an archive nor files";
  return value;
}

/** The apps in a set, sorted. */
export function appsOf({ pieces }: Pick<Manifest, "pieces">): string[] {
  return [...new Set(pieces.flatMap(({ app }) => app ?? []))].sort();
}

/** Bytes that a set restores, without compression and however little of it was new. */
export function sizeOf({ pieces }: Pick<Manifest, "pieces">): number {
  return pieces.reduce((sum, { bytes }) => sum + bytes, 0);
}
