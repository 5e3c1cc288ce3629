/** Finds the key that the user probably meant. */

/** The candidate with the fewest edits: up to a third of its length, at least 2. Undefined when none is that close. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const lower = word.toLowerCase().replaceAll("-", "_");
  const ranked = [...candidates]
    .filter((candidate) => Math.abs(candidate.length - word.length) <= allowed(candidate))
    .map((candidate) => ({ candidate, edits: distance(lower, candidate.replaceAll("-", "_")) }))
    .sort((a, b) => a.edits - b.edits);
  return ranked.find(({ candidate, edits }) => edits <= allowed(candidate) && edits < candidate.length)?.candidate;
}

function allowed(candidate: string): number {
  return Math.max(2, Math.floor(candidate.length / 3));
}

/** Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      const swapped = i > 0 && j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j] ? (before[j - 1] ?? 0) + 1 : replaced;
      next.push(Math.min(replaced, swapped, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
