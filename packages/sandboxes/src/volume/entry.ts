/** Entries of a volume, from what `find` prints of them in a guest, which is not trusted, to what clients get. Pure. */
import { Refusal } from "../failure.ts";

export interface VolumeEntry {
  name: string;
  type: "file" | "directory" | "symlink" | "unknown";
  path: string;
  size: number;
  /** Of the twelve lowest bits. */
  mode: number;
  uid: number;
  gid: number;
  /** RFC 3339, as the others. */
  atime: string;
  mtime: string;
  ctime: string;
  target?: string;
}

const TYPES: Readonly<Record<string, VolumeEntry["type"]>> = { f: "file", d: "directory", l: "symlink" };
const FIELDS = 10;

/**
 * Reads records. `from` is the path in the guest that the client calls `to`. Throws a {@link Refusal} with 502 for anything
 * else.
 */
export function entriesIn(said: string, from: string, to: string): VolumeEntry[] {
  const fields = said.split("\0");
  if (fields.pop() !== "" || fields.length % FIELDS !== 0) throw senseless();
  return Array.from({ length: fields.length / FIELDS }, (_, index) =>
    entryOf(fields.slice(index * FIELDS, (index + 1) * FIELDS), from, to),
  );
}

function entryOf(fields: readonly string[], from: string, to: string): VolumeEntry {
  const [kind = "", size, mode = "", uid, gid, accessed, modified, changed, at = "", target = ""] = fields;
  if (!at.startsWith(from) || !/^[0-7]{1,4}$/.test(mode)) throw senseless();
  const path = joined(to, at.slice(from.length));
  return {
    ...{ name: path === "/" ? "/" : path.slice(path.lastIndexOf("/") + 1), type: TYPES[kind] ?? "unknown", path },
    ...{ size: numberOf(size), mode: Number.parseInt(mode, 8), uid: numberOf(uid), gid: numberOf(gid) },
    ...{ atime: timeOf(accessed), mtime: timeOf(modified), ctime: timeOf(changed) },
    ...(kind === "l" && { target }),
  };
}

function joined(folder: string, rest: string): string {
  const path = `${folder === "/" ? "" : folder}${rest}`;
  return path === "" ? "/" : path;
}

function numberOf(text = ""): number {
  const value = Number(text);
  if (text === "" || !Number.isSafeInteger(value) || value < 0) throw senseless();
  return value;
}

/** From seconds since 1970, with a fraction. */
function timeOf(text = ""): string {
  const time = new Date(Number.parseFloat(text) * 1000);
  if (Number.isNaN(time.getTime())) throw senseless();
  return time.toISOString();
}

function senseless(): Refusal {
  return new Refusal(502, "What the sandbox says of its files makes no sense.");
}
