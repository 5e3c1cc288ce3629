/** Who comes last when the machines of a host want more CPU than it has. Pure. */
import type { ThreadTimes } from "@hibernaut/hypervisor";

/** What the busiest thread of a machine had lately: with the sum, one with many CPUs could look modest, and do one thing for all of them. */
export interface Share {
  /** The part of the time in which it ran. */
  ran: number;
  /** In which it could have run, and others did. */
  waited: number;
}

export interface Contender extends Share {
  /** How many looks tell that. */
  looks: number;
  /** Whether others come before it. */
  last: boolean;
  /** Nobody comes before it, whatever it wants. */
  spared: boolean;
  /** When it was doubted last, by a count that rises: see {@link whoIsDoubted}. */
  doubted: number;
}

/** The part of a host's CPU time from which on its machines wait for each other. */
export const BUSY = 0.85;
/**
 * A machine comes last that wants more than this part of what the greediest one does, and no longer when it wants less than the
 * lower one. The gap keeps machines from changing back and forth: what is between them stays as it is.
 */
const LAST_ABOVE = 0.5;
const NOT_BELOW = 0.4;
/** Nobody waits long for one that wants less of a CPU. */
const LEAST = 0.1;
/**
 * Where everyone waits for everyone, all seem to want everything: then only those come last that also had more than this part of what
 * the greediest one had.
 */
const HAD_ABOVE = 0.7;
/** One look may show anything. */
const LOOKS = 2;
/**
 * One that comes last gets its place back for a moment when it had less than this part of an even share among those that want
 * more than {@link LEAST}, and less than half of that: what else the host does may want all, and comes before it.
 */
const STARVED = 0.1;

/**
 * What a machine wants: the part that it runs of the time in which it waits for nobody. One that never stops wants all, even if many
 * like it leave it little, and one that answers now and then wants little, even if it waits long for each answer.
 */
export function wants({ ran, waited }: Share): number {
  return ran === 0 ? 0 : ran / Math.max(ran, 1 - waited);
}

/**
 * Returns for each machine whether it comes last. A kernel that shares time evenly lets one that only wants a moment wait
 * until the turns of others end, and an answer takes many moments. So those that want little come before those that want much,
 * which share the rest: that is nearly all, since the others use little. Nobody comes before what it would be without
 * this: a machine cannot gain by what others of its owner do. `cpus` is how many the host has.
 */
export function whoComesLast(machines: readonly Contender[], cpus: number): boolean[] {
  const greediest = { wants: most(machines.map(wants)), ran: most(machines.map(({ ran }) => ran)) };
  const even = cpus / machines.filter((machine) => wants(machine) > LEAST).length;
  const starved = Math.min(LEAST / 2, STARVED * even);
  const lasts = machines.map((machine) => {
    if (machine.spared || machine.looks < LOOKS || wants(machine) <= LEAST) return false;
    const part = wants(machine) / greediest.wants;
    if (machine.last) return part > NOT_BELOW && machine.ran >= starved;
    return part > LAST_ABOVE && machine.ran > HAD_ABOVE * greediest.ran;
  });
  // There is nobody to come before.
  return lasts.includes(false) ? lasts : lasts.map(() => false);
}

/**
 * Returns the index of a machine that comes last perhaps by mistake: one that has to wait may seem to want all. Whether it does, only
 * shows when it has its place back for a moment. Everyone has a turn, first the one that had least: a greedy one has what is left.
 */
export function whoIsDoubted(machines: readonly Contender[]): number | undefined {
  const lasts = [...machines.entries()].filter(([, { last }]) => last);
  return lasts.toSorted(([, a], [, b]) => a.doubted - b.doubted || a.ran - b.ran)[0]?.[0];
}

/**
 * What the busiest thread had between two looks, `passedMs` apart. Those that have ended meanwhile take with them what they
 * had; those that are new have had all of it since.
 */
export function shareSince(
  before: ReadonlyMap<number, ThreadTimes>,
  now: ReadonlyMap<number, ThreadTimes>,
  passedMs: number,
): Share {
  let busiest: Share = { ran: 0, waited: 0 };
  for (const [thread, { ranMs, waitedMs }] of now) {
    const { ranMs: ranBefore, waitedMs: waitedBefore } = before.get(thread) ?? { ranMs: 0, waitedMs: 0 };
    // Never less: another thread may have its number.
    const ran = Math.max(0, ranMs - ranBefore) / passedMs;
    const waited = Math.max(0, waitedMs - waitedBefore) / passedMs;
    if (ran >= busiest.ran) busiest = { ran, waited };
  }
  return busiest;
}

function most(numbers: readonly number[]): number {
  return Math.max(0, ...numbers);
}
