/** Reads the intervals of a store's file, and proves that they account for all time. */
import { AMOUNTS, accrued, addAmounts, noAmounts, type Rates } from "@hibernaut/domain/usage";
import type { OpenUsage } from "@hibernaut/store";
import Sqlite from "better-sqlite3";
import { expect } from "vitest";

export interface Interval extends Rates {
  subject: string;
  app: string;
  machine: string;
  since: number;
  until: number;
  wake: "resume" | "cold" | null;
}

/** Every interval that has ended, in the order in which they ended. */
export function intervalsOf(file: string): Interval[] {
  const db = new Sqlite(file, { readonly: true });
  try {
    return db
      .prepare<[], Interval>(
        `SELECT subject, app, machine, meter, since, until, cpus, memory_mb AS memoryMb, layer_mb AS layerMb,
           volume_mb AS volumeMb, snapshot_mb AS snapshotMb, wake FROM usage_intervals ORDER BY seq`,
      )
      .all();
  } finally {
    db.close();
  }
}

/**
 * Fails unless the intervals of each machine and volume touch, up to the open one, so that no second is missing or
 * counted twice, and unless the sums are those of the intervals.
 */
export function expectWhole(file: string, open: readonly OpenUsage[]): void {
  const ends = new Map<string, number>();
  const intervals = intervalsOf(file);
  for (const { subject, since, until } of intervals) {
    expect(since, subject).toBe(ends.get(subject) ?? since);
    expect(until, subject).toBeGreaterThanOrEqual(since);
    ends.set(subject, until);
  }
  for (const { subject, since } of open) expect(since, subject).toBe(ends.get(subject) ?? since);

  const wanted = noAmounts();
  for (const interval of intervals) {
    addAmounts(wanted, accrued(interval, interval.until - interval.since));
    addAmounts(wanted, { resumes: interval.wake === "resume" ? 1 : 0, cold_starts: interval.wake === "cold" ? 1 : 0 });
  }
  const { bytes_in: _in, bytes_out: _out, ...time } = wanted;
  for (const grain of ["machine", "app", "all"])
    for (const digits of [6, 8]) expect(sumOf(file, grain, digits), `${grain} ${digits}`).toMatchObject(time);
}

/** The sum over all periods whose number has this many digits: months or days. */
function sumOf(file: string, grain: string, digits: number): object {
  const db = new Sqlite(file, { readonly: true });
  try {
    const columns = AMOUNTS.map((name) => `coalesce(sum(${name}), 0) AS ${name}`).join(", ");
    const where = "grain = ? AND length(period) = ?";
    return db.prepare(`SELECT ${columns} FROM usage_sums WHERE ${where}`).get(grain, digits) as object;
  } finally {
    db.close();
  }
}
