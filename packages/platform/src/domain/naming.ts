/** What a word means that names one of several things: a pure rule, the same for machines and volumes. */
import { HibernautError } from "./errors.ts";

/** Fewer characters are no beginning of an id: they would mean another thing as soon as there is one more. */
const LEAST_PREFIX = 3;

/** A message lists so many candidates. */
const MOST_SHOWN = 10;

/** Something with an id of its own and a name. */
export interface Named {
  id: string;
  name: string;
}

/** What is being looked for. */
interface Kind {
  /** In messages: `machine`. */
  noun: string;
  /** What all ids begin with, and a word may leave out: `vol_`. */
  prefix?: string;
}

/**
 * The one thing that a word means: by its whole id, else its name, else the beginning of its id. Undefined when it
 * means none; `invalid_argument`, with the candidates, when it means several.
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
    `\`${word}\` means ${candidates.length} ${noun}s: ${shown.join(", ")}${more}. Use the id of one, or more of it.`,
    { candidates: candidates.map(({ id }) => id) },
  );
}
