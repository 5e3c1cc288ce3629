/** Splits a command line into words. */

/** A part of a word: quoted, an escaped character, or plain. */
const PART = /'([^']*)'|"((?:\\[^]|[^"\\])*)"|\\([^])|([^\s'"\\]+)/y;

/**
 * Splits as a shell does, with quotes and backslashes but nothing else: `$NAME`, `*` and `&&` stay as they are.
 * Undefined when a quote is not closed.
 *
 * @example
 * splitWords(`sh -c "bin/rails server"`); // ["sh", "-c", "bin/rails server"]
 */
export function splitWords(command: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < command.length; ) {
    if (/\s/.test(command.charAt(at))) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
      continue;
    }
    PART.lastIndex = at;
    const match = PART.exec(command);
    if (match === null) return undefined;
    const [whole, single, double, escaped, plain] = match;
    // Within double quotes, a backslash escapes only characters that are special there.
    word = (word ?? "") + (single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? plain ?? "");
    at += whole.length;
  }
  if (word !== undefined) words.push(word);
  return words;
}
