/**
 * The order in which Vitest runs the test files. Unit tests come in short bursts, and a file on QEMU keeps a core busy
 * for a minute, then waits for an idle time. Spread among each other, each kind fills the gaps of the other. Unit tests
 * come in blocks, because a process is kept only for the next file of its kind, and last: with short files, no core is idle
 * before the end.
 */
import { BaseSequencer } from "vitest/node";

/**
 * They begin before all others: they take long, but Vitest, which begins with large files where it has no durations of an
 * earlier run, would begin them last, and everything else would wait for them.
 */
const SMALL_BUT_LONG = [
  "/stories/compose-projects.qemu.test.ts",
  "/hypervisor/test/qemu.qemu.test.ts",
  "/stories/rotation.qemu.test.ts",
  "/cli/test/deploy/found-port.test.ts",
];

/**
 * Spreads the items of the shorter list evenly among those of the longer one, begins with the first list and ends with the
 * other one; each list keeps its order. @template T
 */
export function spread(/** @type {readonly T[]} */ one, /** @type {readonly T[]} */ other) {
  const begins = one.map((item, index) => ({ item, at: index / one.length }));
  const ends = other.map((item, index) => ({ item, at: (index + 1) / other.length }));
  return [...ends, ...begins].sort((a, b) => a.at - b.at).map(({ item }) => item);
}

/**
 * Files in a block: each process that works on a block loads the modules again, which takes as long as several of its files.
 * In one block, all unit tests would run at a time when no test on QEMU waits.
 */
const BLOCK = 80;

/** Cuts a list into blocks of up to `size` items. @template T */
function blocks(/** @type {readonly T[]} */ list, size = BLOCK) {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));
}

export default class SpreadingSequencer extends BaseSequencer {
  /**
   * @override
   * @param {import("vitest/node").TestSpecification[]} files
   */
  async sort(files) {
    const sorted = await super.sort(files);
    const early = sorted.filter(({ moduleId }) => SMALL_BUT_LONG.some((end) => moduleId.endsWith(end)));
    const of = (/** @type {string} */ name) => sorted.filter(({ project }) => project.name === name);
    const unit = [...blocks(of("unit")), ...blocks(of("unit-apart"))];
    // Each file once, where it comes first.
    return [...new Set([...early, ...spread(blocks(of("qemu"), 1), unit).flat(), ...sorted])];
  }
}
