/** Splits a command line into words, as Fly does with `cmd` of an exec: quotes and backslashes, and nothing else of a shell. Pure. */
import { Refusal } from "../failure.ts";

const BLANK = /\s/;

/** Throws a {@link Refusal} when a quote is not closed. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const char = line.charAt(at);
    if (quote === undefined && BLANK.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === "\\" && quote !== "'" && at + 1 < line.length) {
      at += 1;
      word = (word ?? "") + line.charAt(at);
    } else if (quote === undefined && (char === '"' || char === "'")) {
      quote = char;
      word ??= "";
    } else if (char === quote) quote = undefined;
    else word = (word ?? "") + char;
  }
  if (quote !== undefined) throw new Refusal(400, `invalid_argument: cmd has a ${quote} that is not closed.`);
  return word === undefined ? words : [...words, word];
}
