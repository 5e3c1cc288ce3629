/** Which uploads of an app make room for others. Pure. */
import { UPLOAD_KEPT_MS } from "./limits.ts";

/** Limits of an app in bytes, and how many. Tests have smaller ones. */
export interface UploadLimits {
  bytes: number;
  allBytes: number;
  count: number;
}

/** An upload that is stored. `usedMs`: when it was last asked for, in milliseconds since 1970. */
export interface StoredUpload {
  path: string;
  bytes: number;
  usedMs: number;
}

/** Returns those that nobody wants, and the oldest of the others until one more of `add` bytes fits; of 0 bytes, none comes. */
export function tooMany(
  uploads: readonly StoredUpload[],
  add: number,
  { count: most, allBytes, now }: Omit<UploadLimits, "bytes"> & { now: number },
): StoredUpload[] {
  let count = uploads.length + (add > 0 ? 1 : 0);
  let bytes = uploads.reduce((sum, one) => sum + one.bytes, add);
  const gone: StoredUpload[] = [];
  for (const one of uploads.toSorted((a, b) => a.usedMs - b.usedMs)) {
    const unwanted = now - one.usedMs > UPLOAD_KEPT_MS;
    if (!unwanted && count <= most && bytes <= allBytes) break;
    gone.push(one);
    count -= 1;
    bytes -= one.bytes;
  }
  return gone;
}
