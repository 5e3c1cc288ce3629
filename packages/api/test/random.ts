/** Numbers that look random, and are the same for the same seed. */

export interface Random {
  /** A whole number from 0 to below `count`. */
  below(count: number): number;
  oneIn(count: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** Returns a source of numbers (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const below = (count: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * count);
  };
  return {
    below,
    oneIn: (count) => below(count) === 0,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined && !items.includes(item as never)) throw new Error("nothing to pick from");
      return item as never;
    },
  };
}
