/** Adds up the usage of a range: what the store has added up, and what has accrued since. */
import { dayOf, dayText, daysOf, periodsOf } from "../domain/periods.ts";
import { accrued, addAmounts, type Amounts, noAmounts } from "../domain/usage.ts";
import type { OpenUsage, UsageStore } from "../store/contract.ts";
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
  const periods = periodsOf(range.since, range.end);
  for (const { name, period: _, ...sum } of store.sums({ grain, periods, app, machine })) amounts.set(name, sum);
  for (const open of openOf(store, { app, machine })) {
    const name = open[grain];
    const sum = amounts.get(name) ?? noAmounts();
    const [since, until] = [Math.max(open.since, range.since), Math.min(range.until, range.end)];
    if (until > since) addAmounts(sum, accrued(open, until - since));
    // A machine that has existed for no time at all is shown, too; one that came later is not.
    if (amounts.has(name) || open.since < range.end) amounts.set(name, sum);
  }
  if (grain === "app") return [...amounts].map(([name, sum]) => appRow(name, sum)).toSorted(byText((row) => row.app));
  const names = store.names(app);
  return [...amounts]
    .map(([name, sum]) => {
      const { app: owner, title } = names.get(name) ?? { app: app ?? "", title: null };
      return { ...appRow(owner, sum), machine: title === null ? null : { id: name, name: title } };
    })
    .toSorted(byText((row) => `${row.app} ${row.machine?.name ?? "~"} ${row.machine?.id ?? ""}`));
}

function byDay(store: UsageStore, { range, app, machine }: ReportQuery): UsageGroup[] {
  const days = new Map<number, Amounts>();
  for (const { day } of daysOf(range.since, range.end)) days.set(day, noAmounts());
  const grain = machine !== undefined ? "machine" : app !== undefined ? "app" : "all";
  for (const { name: _, period, ...sum } of store.sums({
    grain,
    periods: [...days.keys()],
    app,
    machine,
    byPeriod: true,
  }))
    days.set(period, sum);
  for (const open of openOf(store, { app, machine })) {
    for (const piece of daysOf(Math.max(open.since, range.since), range.until)) {
      const sum = days.get(piece.day);
      if (sum !== undefined) addAmounts(sum, accrued(open, piece.until - piece.since));
    }
  }
  const last = dayOf(range.until);
  return [...days]
    .filter(([day]) => day <= last)
    .map(([day, amounts]) => ({ app: app ?? null, machine: null, day: dayText(day), amounts }));
}

function openOf(store: UsageStore, { app, machine }: Pick<ReportQuery, "app" | "machine">): OpenUsage[] {
  const open = store.open(app);
  return machine === undefined ? open : open.filter((each) => each.machine === machine);
}

function appRow(app: string, amounts: Amounts): UsageGroup {
  return { app, machine: null, day: null, amounts };
}

function byText<T>(text: (item: T) => string | null) {
  return (one: T, other: T) => ((text(one) ?? "") < (text(other) ?? "") ? -1 : 1);
}
