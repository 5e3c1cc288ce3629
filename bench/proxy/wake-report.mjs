/** The figures of a run, and whether they meet the goal. */
import { round, summary } from "../lib/stats.mjs";

/** How many times as long as the bare script a wake of any kind may take. */
export const GOAL = { ratio: 1.2 };

const TITLES = /** @type {const} */ ({
  resume_cached: "resume, snapshot in the page cache",
  resume_dropped: "resume, snapshot dropped from it",
  cold: "cold start",
});

/**
 * The parts of a wake, by the marks at which they end. Each begins where the one before it ended. The bare script does
 * not have all of them.
 */
const PARTS = {
  resume: {
    spawn: "request, store, checks of the snapshot",
    spawned: "QEMU is spawned",
    load: "QEMU starts",
    loaded: "QEMU loads the device state",
    cont: "the store marks the snapshot as used",
    awake: "the guest continues, its clock is set",
    connect: "the proxy takes over",
    connected: "a connection to the app",
    first: "the app's first byte",
    answered: "the proxy hands it on",
  },
  cold: {
    spawn: "request, store, layer and memory",
    spawned: "QEMU is spawned",
    connect: "kernel, agent and app start",
    connected: "a connection to the app",
    first: "the app's first byte",
    answered: "the proxy hands it on",
  },
};

/**
 * @typedef {keyof typeof TITLES} Kind
 * @typedef {"platform" | "bare"} Side
 * @typedef {object} Sample
 * @property {number} round
 * @property {Kind} kind
 * @property {Side} side
 * @property {boolean} first Whether this side was measured first in its pair.
 * @property {number} ms From the request, or for the bare script from QEMU's start, to the first byte of the answer.
 * @property {number} busy How busy the host's CPUs were just before, from 0 to 1.
 * @property {number} cached_bytes How many bytes of the snapshot's files were in the page cache just before.
 * @property {string} wake The value of the header `Hibernaut-Wake`.
 * @property {Record<string, number>} parts The parts' durations in milliseconds.
 */

/** Returns how long each part took. @param {Kind} kind @param {Record<string, number>} marks */
export function partsOf(kind, marks) {
  let before = marks.began ?? Number.NaN;
  /** @type {Record<string, number>} */
  const parts = {};
  for (const name of Object.keys(PARTS[kind === "cold" ? "cold" : "resume"])) {
    const at = marks[name];
    if (at === undefined) continue;
    parts[name] = round(at - before);
    before = at;
  }
  return parts;
}

/** Returns the figures of one kind of wake. @param {Kind} kind @param {Sample[]} all */
function summarizeKind(kind, all) {
  const of = (/** @type {Side} */ side) => all.filter((sample) => sample.kind === kind && sample.side === side);
  const side = (/** @type {Sample[]} */ samples) => ({
    ms: summary(samples.map(({ ms }) => ms)),
    parts_ms: Object.fromEntries(
      Object.keys(samples[0]?.parts ?? {}).map((part) => [part, summary(samples.map(({ parts }) => parts[part] ?? 0))]),
    ),
  });
  const [platform, bare] = [of("platform"), of("bare")];
  const pairs = platform.flatMap((sample) => {
    const other = bare.find((candidate) => candidate.round === sample.round);
    return other === undefined ? [] : [round(sample.ms / other.ms, 3)];
  });
  const [through, beside] = [side(platform), side(bare)];
  return {
    platform: through,
    bare: beside,
    ratio_of_medians: round(through.ms.median / beside.ms.median, 3),
    ratio_of_pairs: summary(pairs),
  };
}

/** @param {Sample[]} samples */
export function summarize(samples) {
  const kinds = /** @type {Kind[]} */ (Object.keys(TITLES)).filter((kind) => samples.some((one) => one.kind === kind));
  return Object.fromEntries(kinds.map((kind) => [kind, summarizeKind(kind, samples)]));
}

/** @typedef {ReturnType<typeof summarize>} Results */

/** @param {Results} results */
export function print(results) {
  for (const [name, { platform, bare, ratio_of_medians, ratio_of_pairs }] of Object.entries(results)) {
    const kind = /** @type {Kind} */ (name);
    const { min, median: pairs, max } = ratio_of_pairs;
    console.log(`\n${TITLES[kind]}: request to first byte, ms`);
    console.table({ platform: platform.ms, bare: bare.ms });
    console.log(`ratio of the medians ${ratio_of_medians}; of pairs ${pairs} (${min}–${max})`);
    const rows = Object.entries(PARTS[kind === "cold" ? "cold" : "resume"]).map(([part, title]) => [
      title,
      { platform: platform.parts_ms[part]?.median ?? "", bare: bare.parts_ms[part]?.median ?? "" },
    ]);
    console.log("where it goes, medians in ms:");
    console.table(Object.fromEntries(rows));
  }
}

/** Returns whether every kind that was measured meets the goal. @param {Results} results */
export function goalMet(results) {
  return Object.values(results).every(({ ratio_of_medians: ratio }) => ratio <= GOAL.ratio);
}
