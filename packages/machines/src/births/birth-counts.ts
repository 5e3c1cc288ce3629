/** How many machines came to be from the memory of another one, since the platform started. */

/** `pool`: made in advance, and taken when it was asked for. */
export const BIRTH_KINDS = ["fork", "template", "pool", "backup"] as const;
type BirthKind = (typeof BIRTH_KINDS)[number];

export class BirthCounts {
  readonly #counts = new Map<BirthKind, number>();

  add(kind: BirthKind, count = 1): void {
    this.#counts.set(kind, this.of(kind) + count);
  }

  of(kind: BirthKind): number {
    return this.#counts.get(kind) ?? 0;
  }
}
