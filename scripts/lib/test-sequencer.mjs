/**
 * The order in which Vitest runs the test files. Unit tests come in short bursts, and a file on QEMU keeps a core busy
 * for a minute, then waits for an idle time. Spread among each other, each kind fills the gaps of the other.
 */
import { BaseSequencer } from "vitest/node";

/** Spreads the items of the shorter list evenly among those of the longer one; each list keeps its order. @template T */
export function spread(/** @type {readonly T[]} */ one, /** @type {readonly T[]} */ other) {
  const place = (/** @type {readonly T[]} */ list) => list.map((item, index) => ({ item, at: index / list.length }));
  return [...place(one), ...place(other)].sort((a, b) => a.at - b.at).map(({ item }) => item);
}

export default class SpreadingSequencer extends BaseSequencer {
  /**
   * @override
   * @param {import("vitest/node").TestSpecification[]} files
   */
  async sort(files) {
    const sorted = await super.sort(files);
    const of = (/** @type {string} */ name) => sorted.filter(({ project }) => project.name === name);
    const mixed = new Set(spread(of("qemu"), of("unit")));
    return [...mixed, ...sorted.filter((file) => !mixed.has(file))];
  }
}
