/** Adds up the usage of a range: what the store has added up, and what has accrued since. */
import { DAY_MS, dayRange, daysOf, dayText, periodRanges } from "@hibernaut/domain/periods";
import { type Amounts, accrued, addAmounts, noAmounts } from "@hibernaut/domain/usage";
import type { OpenUsage, UsageStore } from "@hibernaut/store";
import type { UsageRange } from "./range.ts";

/** What each row of a report is about. */
export const GROUPINGS = ["app", "machine", "day"] as const;

export type Grouping = (typeof GROUPINGS)[number];

/** What to report. */
export interface ReportQuery {
  range: UsageRange;
  groupBy: Grouping;
  /** Only this app. */
  app?: string | undefined;
  /** Only this machine, by its whole id. */
  machine?: string | undefined;
}

/** One row. What does not apply to its group is null. */
export interface UsageGroup {
  app: string | null;
  /** Null also for the volumes of an app that no machine has. */
  machine: { id: string; name: string } | null;
  /** `2026-01-31` */
  day: string | null;
  amounts: Amounts;
}

/** Returns the rows, sorted: apps by name, machines by app and name, days in order and without gaps. */
export function reportRows(store: UsageStore, query: ReportQuery): UsageGroup[] {
  return query.groupBy === "day" ? byDay(store, query) : byName(store, query, query.groupBy);
}

function byName(store: UsageStore, { range, app, machine }: ReportQuery, grain: "app" | "machine"): UsageGroup[] {
  const amounts = new Map<string, Amounts>();
  const ranges = periodRanges(range.since, range.end);
  for (const { name, period: _, ...sum } of store.sums({ grain, ranges, app, machine })) amounts.set(name, sum);
  for (const open of openOf(store, { app, machine })) {
    const name = open[grain];
    const sum = amounts.get(name) ?? noAmounts();
    const [since, until] = [Math.max(open.since, range.since), Math.min(range.until, range.end)];
    if (until > since) addAmounts(sum, accrued(open, until - since));
    // A machine that has existed for no time at all is shown, too; one that came later is not.
    if (amounts.has(name) || open.since < range.end) amounts.set(name, sum);
  }
  if (grain === "app")
    return sortedBy(
      (row) => row.app ?? "",
      [...amounts].map(([name, sum]) => appRow(name, sum)),
    );
  const names = store.names(app);
  const rows = [...amounts].map(([name, sum]) => {
    const { app: owner, title } = names.get(name) ?? { app: app ?? "", title: null };
    return { ...appRow(owner, sum), machine: title === null ? null : { id: name, name: title } };
  });
  // What no machine has comes last: no name has a tilde.
  return sortedBy((row) => `${row.app} ${row.machine?.name ?? "~"} ${row.machine?.id ?? ""}`, rows);
}

function byDay(store: UsageStore, { range, app, machine }: ReportQuery): UsageGroup[] {
  const days = new Map<number, Amounts>();
  // Tomorrow may be part of the range, but nothing was used then.
  for (const { day } of daysOf(range.since, Math.max(range.until, range.since + 1))) days.set(day, noAmounts());
  const grain = machine !== undefined ? "machine" : app !== undefined ? "app" : "all";
  const ranges = [dayRange(range.since, range.end)];
  for (const { name: _, period, ...sum } of store.sums({ grain, ranges, app, machine, byPeriod: true }))
    if (days.has(period)) days.set(period, sum);
  addByDay([...days.values()], range, openOf(store, { app, machine }));
  return [...days].map(([day, amounts]) => ({ app: app ?? null, machine: null, day: dayText(day), amounts }));
}

/**
 * Adds what has accrued since to its days. A whole day of an interval is not added to each day, which would take seconds
 * for a year of 10,000 sleeping machines: it is noted where the whole days begin and end, and added up once.
 */
function addByDay(days: readonly Amounts[], range: UsageRange, open: readonly OpenUsage[]): void {
  const changes = Array.from({ length: days.length + 1 }, noAmounts);
  const add = (sums: readonly Amounts[], index: number, amounts: Amounts) => {
    const sum = sums[index];
    if (sum !== undefined) addAmounts(sum, amounts);
  };
  for (const rates of open) {
    const since = Math.max(rates.since, range.since);
    if (since >= range.until) continue;
    const first = Math.ceil((since - range.since) / DAY_MS);
    const last = Math.floor((range.until - range.since) / DAY_MS);
    const wholeSince = range.since + first * DAY_MS;
    const wholeUntil = range.since + last * DAY_MS;
    if (last < first) add(days, last, accrued(rates, range.until - since));
    else {
      add(days, first - 1, accrued(rates, wholeSince - since));
      add(changes, first, accrued(rates, DAY_MS));
      add(changes, last, accrued(rates, -DAY_MS));
      add(days, last, accrued(rates, range.until - wholeUntil));
    }
  }
  const perDay = noAmounts();
  for (const [index, sum] of days.entries()) {
    addAmounts(perDay, changes[index] ?? {});
    addAmounts(sum, perDay);
  }
}

function openOf(store: UsageStore, { app, machine }: Pick<ReportQuery, "app" | "machine">): OpenUsage[] {
  const open = store.open(app);
  return machine === undefined ? open : open.filter((each) => each.machine === machine);
}

function appRow(app: string, amounts: Amounts): UsageGroup {
  return { app, machine: null, day: null, amounts };
}

function sortedBy<T>(keyOf: (item: T) => string, items: readonly T[]): T[] {
  const keyed = items.map((item) => ({ key: keyOf(item), item }));
  return keyed.toSorted((one, other) => (one.key < other.key ? -1 : 1)).map(({ item }) => item);
}
