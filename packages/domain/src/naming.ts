/** Names: which ones are valid, and which machine or volume a word refers to. Pure rules. */
import { HibernautError } from "./errors.ts";

/** A label of RFC 1123, because an app's name is a part of its hostname. */
export const NAME_PATTERN = "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$";
const LABEL = new RegExp(NAME_PATTERN);

/** The rule for names of apps and machines, as the end of a sentence in an error message. */
export const NAME_RULE =
  "must have 1 to 63 lowercase letters, digits and hyphens, and cannot begin or end with a hyphen";

/** Whether `text` can be the name of an app or machine, or one label of a hostname. */
export function isValidName(text: string): boolean {
  return LABEL.test(text);
}

const VOLUME_NAME = /^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/;
const VOLUME_ID = /^vol_[0-9a-f]{16}$/;

/** Whether a word that names a volume is an id. */
export function isVolumeId(text: string): boolean {
  return VOLUME_ID.test(text);
}

/**
 * Why `text` cannot be the name of a volume, as sentences that say what to do; undefined if it can. An id cannot, because
 * a mount could then mean either volume.
 */
export function volumeNameRefusal(text: string): string | undefined {
  if (VOLUME_NAME.test(text) && !isVolumeId(text)) return undefined;
  return `\`${text.slice(0, 60)}\` is not a valid name for a volume. Use 1 to 63 characters from a-z, 0-9, _ and -, with a letter or a digit at either end.`;
}

/** Shorter prefixes of an id would be likely to match something else as soon as another machine or volume exists. */
const LEAST_PREFIX = 3;

/** A message lists up to this many candidates. */
const MOST_SHOWN = 10;

/** Something with an id and a name. */
export interface Named {
  id: string;
  name: string;
}

/** The kind of thing to look for. */
interface Kind {
  /** In messages: `machine`. */
  noun: string;
  /** The prefix of every id, which a word may leave out: `vol_`. */
  prefix?: string;
}

/**
 * Returns the one thing that a word refers to: by id, then by name, then by the beginning of the id. Returns undefined
 * when nothing matches, and throws `invalid_argument`, with the candidates, when several things match.
 *
 * @example
 * findNamed("3f9", [{ id: "3f9c01ab22de41", name: "web" }], { noun: "machine" })?.name; // "web"
 */
export function findNamed<T extends Named>(word: string, things: readonly T[], kind: Kind): T | undefined {
  const exact = things.find(({ id }) => id === word);
  if (exact !== undefined) return exact;
  const named = things.filter(({ name }) => name === word);
  const [found, ...others] = named.length > 0 ? named : beginning(word, things, kind);
  if (found === undefined || others.length === 0) return found;
  throw ambiguous(word, [found, ...others], kind);
}

function beginning<T extends Named>(word: string, things: readonly T[], { prefix = "" }: Kind): T[] {
  const start = word.startsWith(prefix) ? word : prefix + word;
  if (start.length < prefix.length + LEAST_PREFIX) return [];
  return things.filter(({ id }) => id.startsWith(start));
}

function ambiguous(word: string, candidates: readonly Named[], { noun }: Kind): HibernautError {
  const shown = candidates.slice(0, MOST_SHOWN).map(({ id, name }) => `${id} (${name})`);
  const more = candidates.length > MOST_SHOWN ? ` and ${candidates.length - MOST_SHOWN} more` : "";
  return new HibernautError(
    "invalid_argument",
    `\`${word}\` matches ${candidates.length} ${noun}s: ${shown.join(", ")}${more}. Use an id, or more characters of one.`,
    { candidates: candidates.map(({ id }) => id) },
  );
}
