/** Guesses what the user meant by a word, if its spelling is close to another. */
import { distance } from "./appfile/nearest.ts";

/** One typing error is allowed per this many letters. More errors make another word. */
const LETTERS_PER_SLIP = 3;

/**
 * The candidate that the word misspells; undefined when none is close.
 *
 * @example
 * closest("strat", ["start", "stop"]); // "start"
 * closest("open", ["tokens"]); // undefined
 */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= Math.floor(Math.max(word.length, candidate.length) / LETTERS_PER_SLIP))
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.candidate;
}
