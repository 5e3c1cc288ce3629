/** Which machines go when an app gets smaller: a pure rule. Data counts most, then age. */
import type { Machine, Volume } from "@hibernaut/client";

/**
 * Below this a volume counts as empty: an empty file system of 1 GB takes up to 50 MB (its tables and journal), and
 * how much of that is written yet differs. Above it the steps double, so that such differences decide nothing.
 */
const EMPTY_BYTES = 128 * 1024 * 1024;

/** What a rule about going needs to know of a machine. */
export interface Member {
  machine: Machine;
  volumes: readonly Volume[];
}

/**
 * The `count` machines that go, in the order in which they do: those without volumes, then those whose volumes hold
 * least, then those whose volumes are newest. Never one with an older and fuller volume before one with a newer and
 * emptier. Where volumes do not decide, failed machines go first, then the newest.
 */
export function chooseGoing(members: readonly Member[], count: number): Member[] {
  return members.toSorted(compare).slice(0, Math.max(0, count));
}

/** A machine with the volumes that it has. */
export function memberOf(machine: Machine, volumes: readonly Volume[]): Member {
  return { machine, volumes: volumes.filter(({ attached_machine_id: id }) => id === machine.id) };
}

function compare(a: Member, b: Member): number {
  return (
    Number(a.volumes.length > 0) - Number(b.volumes.length > 0) ||
    fullness(a) - fullness(b) ||
    newestFirst(oldest(a.volumes), oldest(b.volumes)) ||
    Number(b.machine.state === "failed") - Number(a.machine.state === "failed") ||
    newestFirst(a.machine.created_at, b.machine.created_at)
  );
}

/** 0 for as good as empty, then a step for each doubling. */
function fullness({ volumes }: Member): number {
  const used = volumes.reduce((sum, { used_bytes: bytes }) => sum + bytes, 0);
  return used < EMPTY_BYTES ? 0 : 1 + Math.floor(Math.log2(used / EMPTY_BYTES));
}

function oldest(volumes: readonly Volume[]): string {
  return volumes.map(({ created_at: at }) => at).sort()[0] ?? "";
}

/** Times are RFC 3339 in UTC: their order is that of their texts. */
function newestFirst(a: string, b: string): number {
  return a === b ? 0 : a < b ? 1 : -1;
}
