/** Remembers what was made of texts: lists of machines are asked for over and over, and few of them have changed. */

/** What all texts together may have, in characters. 2,000 machines have about 4 million. */
const MOST_CHARACTERS = 16 * 1024 * 1024;

/** Returns what `make` makes of a text, made once. The ones that were not asked for longest are forgotten. */
export function remembered<T>(make: (text: string) => T, most = MOST_CHARACTERS): (text: string) => T {
  const known = new Map<string, T>();
  let characters = 0;
  return (text) => {
    const found = known.has(text) ? known.get(text) : undefined;
    const value = known.has(text) ? (found as T) : make(text);
    if (!known.delete(text)) characters += text.length;
    known.set(text, value);
    for (const oldest of known.keys()) {
      if (characters <= most) break;
      known.delete(oldest);
      characters -= oldest.length;
    }
    return value;
  };
}
