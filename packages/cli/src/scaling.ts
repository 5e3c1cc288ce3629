/** Decides which machines to destroy when an app scales down. Pure. Data counts most, then age. */
import type { Machine, Volume } from "@hibernaut/client";

/**
 * A volume with less than this counts as empty: an empty file system of 1 GB takes up to 50 MB (tables and journal),
 * and how much of that has been written varies. Above it, steps double, so that such differences decide nothing.
 */
const EMPTY_BYTES = 128 * 1024 * 1024;

/** What the rule needs to know about a machine. */
export interface Member {
  machine: Machine;
  volumes: readonly Volume[];
}

/**
 * The `count` machines to destroy, in this order: those without volumes, then those whose volumes hold the least
 * data, then those whose volumes are newest. A machine with an older, fuller volume never goes before one with a newer,
 * emptier volume. Where volumes do not decide, failed machines go first, then the newest.
 */
export function chooseGoing(members: readonly Member[], count: number): Member[] {
  return members.toSorted(compare).slice(0, Math.max(0, count));
}

/** A machine with its volumes. */
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

/** 0 for practically empty, then one step for each doubling. */
function fullness({ volumes }: Member): number {
  const used = volumes.reduce((sum, { used_bytes: bytes }) => sum + bytes, 0);
  return used < EMPTY_BYTES ? 0 : 1 + Math.floor(Math.log2(used / EMPTY_BYTES));
}

function oldest(volumes: readonly Volume[]): string {
  return volumes.map(({ created_at: at }) => at).sort()[0] ?? "";
}

/** Times are RFC 3339 in UTC, so they sort as text. */
function newestFirst(a: string, b: string): number {
  return a === b ? 0 : a < b ? 1 : -1;
}
