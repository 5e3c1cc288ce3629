/** The word that was probably meant. */

/** Longer words are no typing errors, and comparing them costs the product of their lengths. */
const MAX_LENGTH = 64;

/**
 * The candidate nearest to `word`, or undefined when none is near: one that contains it or is
 * contained, else the one with the fewest edits, at most a third of its length (but always 2).
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

/** Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) best = Math.min(best, at(i - 2, j - 2) + 1);
      row.push(best);
    }
  }
  return at(a.length, b.length);
}
