/** Guesses which word was meant. */
import { distance } from "fastest-levenshtein";

/** Longer words are not typing errors, and the time to compare two words grows with the product of their lengths. */
const MAX_LENGTH = 64;

/**
 * Returns the candidate that `word` was probably meant to be: the one with the fewest edits, up to a third of its
 * length (but at least 2), otherwise one that contains the word or is contained in it. Undefined when none is close.
 *
 * @example
 * nearest("internal_prot", ["protocol", "internal_port"]); // "internal_port"
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word === "" || word.length > MAX_LENGTH) return undefined;
  const ranked = candidates
    .filter((candidate) => candidate.length <= MAX_LENGTH)
    .map((candidate) => ({ candidate, edits: distance(word.toLowerCase(), candidate) }))
    .sort((a, b) => a.edits - b.edits);
  const close = ranked.find(
    ({ candidate, edits }) => edits <= Math.max(2, Math.ceil(candidate.length / 3)) && edits < candidate.length,
  );
  return (close ?? ranked.find(({ candidate }) => contains(word, candidate)))?.candidate;
}

function contains(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return short.length >= 3 && long.includes(short);
}
