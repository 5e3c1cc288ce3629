/** Finds the machine or volume that a word stands for. Pure. */
import { HibernautError } from "./errors.ts";

/** The shortest beginning of an id. A shorter one would become ambiguous as soon as there is another machine. */
const MIN_PREFIX = 3;

/** How many candidates an error message lists. */
const MAX_SHOWN = 10;

/** Something with an id and a name. */
export interface Named {
  id: string;
  name: string;
}

/** The kind of thing to look for. */
interface Kind {
  /** The word for it in messages, e.g. `machine`. */
  noun: string;
  /** The beginning of all ids, which a word may leave out, e.g. `vol_`. */
  prefix?: string;
}

/**
 * Finds a thing by its id, otherwise by its name, otherwise by the beginning of its id. Undefined when nothing matches.
 * Throws `invalid_argument`, with the candidates, when several things match.
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
  if (start.length < prefix.length + MIN_PREFIX) return [];
  return things.filter(({ id }) => id.startsWith(start));
}

function ambiguous(word: string, candidates: readonly Named[], { noun }: Kind): HibernautError {
  const shown = candidates.slice(0, MAX_SHOWN).map(({ id, name }) => `${id} (${name})`);
  const more = candidates.length > MAX_SHOWN ? ` and ${candidates.length - MAX_SHOWN} more` : "";
  return new HibernautError(
    "invalid_argument",
    `\`${word}\` matches ${candidates.length} ${noun}s: ${shown.join(", ")}${more}. Use an id from this list, or more characters of it.`,
    { candidates: candidates.map(({ id }) => id) },
  );
}
