/** The metadata of machines: words for programs, which can be changed without a new version. Pure rules. */
import { HibernautError } from "./errors.ts";

/** How many keys a machine has at most. Every list of machines carries all of them. */
export const MOST_METADATA_KEYS = 64;
/** A key, in characters: it is a part of a path, where a character may take three. */
const METADATA_KEY_MAX_LENGTH = 64;
/** A value, in characters: a label or a small document, and not a file. */
export const METADATA_VALUE_MAX_LENGTH = 1024;
/** How many keys one request changes at most: it may replace all of them. */
export const MOST_METADATA_CHANGES = 2 * MOST_METADATA_KEYS;
/**
 * Printable ASCII without spaces, which is the same in a path, in a query and in JSON; and nothing that means something else
 * in one of them. The pattern of a JSON schema.
 */
export const METADATA_KEY_PATTERN = `^(?!__proto__$|\\.{1,2}$)[!-~]{1,${METADATA_KEY_MAX_LENGTH}}$`;

/** Values by key. */
export type Metadata = Readonly<Record<string, string>>;

/** New values by key; null removes one. */
export type MetadataChange = Readonly<Record<string, string | null>>;

/** Returns the metadata after a change. What the change does not name stays as it is. */
export function mergedMetadata(before: Metadata = {}, change: MetadataChange): Metadata {
  const after = Object.entries({ ...before, ...change }).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  );
  return Object.fromEntries(after);
}

/**
 * Throws `invalid_argument` when the change adds keys and there are too many then. A machine of an earlier release may have
 * more, and loses some with each removal.
 */
export function requireMetadataRoom(before: Metadata = {}, change: MetadataChange): void {
  const [had, has] = [before, mergedMetadata(before, change)].map((each) => Object.keys(each).length);
  if (has === undefined || had === undefined || has <= MOST_METADATA_KEYS || has <= had) return;
  const message = `A machine has at most ${MOST_METADATA_KEYS} keys of metadata, and this one would have ${has}. Remove some first.`;
  throw new HibernautError("invalid_argument", message, { field: "metadata", maximum: MOST_METADATA_KEYS });
}
