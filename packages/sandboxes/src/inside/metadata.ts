/** What a client attaches to a file: headers `X-Metadata-<key>: <value>`. */
import { Refusal } from "../failure.ts";

const PREFIX = "x-metadata-";
const PRINTABLE = /^[\x20-\x7e]*$/;
/** The kernel's longest name of an attribute, without `user.e2b.`, in bytes. */
const MOST_KEY_BYTES = 246;
/** All of a file, with the namespace for each key, in bytes: what fits into an inode of ext4. */
const MOST_BYTES = 4096;
const NAMESPACE_BYTES = "user.e2b.".length;

/** Returns them from a request's raw headers. The first of each counts. Throws a {@link Refusal} for those that no file can have. */
export function metadataOf(rawHeaders: readonly string[]): Record<string, string> {
  const metadata: Record<string, string> = {};
  let bytes = 0;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    const value = rawHeaders[index + 1] ?? "";
    if (!name.startsWith(PREFIX)) continue;
    const key = name.slice(PREFIX.length);
    if (key === "" || Object.hasOwn(metadata, key)) continue;
    if (!PRINTABLE.test(key) || !PRINTABLE.test(value))
      throw new Refusal(400, `The metadata '${key}' is not printable ASCII.`);
    if (key.length > MOST_KEY_BYTES)
      throw new Refusal(400, `A key of the metadata is longer than ${MOST_KEY_BYTES} bytes.`);
    bytes += NAMESPACE_BYTES + key.length + value.length;
    if (bytes > MOST_BYTES) throw new Refusal(400, `The metadata of a file is more than ${MOST_BYTES} bytes.`);
    metadata[key] = value;
  }
  return metadata;
}
