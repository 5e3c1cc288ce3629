/** Usage as the API reports it: by range and group, with its cost, and as counters since the beginning. */
import { HibernautError } from "@hibernaut/domain/errors";
import { ALL_TIME_RANGE } from "@hibernaut/domain/periods";
import { type Amounts, accrued, addAmounts, noAmounts } from "@hibernaut/domain/usage";
import type { UsageStore } from "@hibernaut/store";
import { type Cost, costOf, type Prices } from "./prices.ts";
import { usageRange } from "./range.ts";
import { type Grouping, type ReportQuery, reportRows, type UsageGroup } from "./report.ts";

/** What to report. Times are milliseconds since 1970. */
interface UsageQuestion {
  /** Default: 30 days before `to`. */
  from?: number | undefined;
  /** Default: now. */
  to?: number | undefined;
  /** Default: `app`. */
  groupBy?: Grouping | undefined;
  app?: string | undefined;
  /** Only these apps, which may have been destroyed. */
  apps?: readonly string[] | undefined;
}

/** A row with its cost, which is null without a price file. */
export interface PricedGroup extends UsageGroup {
  cost: Cost | null;
}

/** The answer. Times are milliseconds since 1970. */
export interface UsageReport {
  since: number;
  until: number;
  groupBy: Grouping;
  currency: string | null;
  rows: PricedGroup[];
  /** All rows together. */
  total: PricedGroup;
}

export interface UsageOptions {
  store: UsageStore;
  /** Absent without a price file. */
  prices?: Prices | undefined;
  /** The wall clock, in milliseconds since 1970. By default, the host's. */
  now?(): number;
}

/** Answers questions about usage. Throws a HibernautError for one that makes no sense. */
export class Usage {
  readonly #store: UsageStore;
  readonly #prices: Prices | undefined;
  readonly #now: () => number;

  constructor({ store, prices, now = Date.now }: UsageOptions) {
    this.#store = store;
    this.#prices = prices;
    this.#now = now;
  }

  /** Reports the usage of all apps or of one, which may have been destroyed. */
  report({ from, to, groupBy = "app", app, apps }: UsageQuestion): UsageReport {
    if (app !== undefined && !this.#store.knowsApp(app)) {
      const message = `No usage of an app named ${app.slice(0, 63)} was ever recorded. See \`hibernaut usage\` for all apps.`;
      throw new HibernautError("not_found", message, { app });
    }
    const range = usageRange({ from, to }, this.#now());
    if (app !== undefined || apps === undefined) return this.#report({ range, groupBy, app });
    const rows = apps.toSorted().flatMap((each) => reportRows(this.#store, { range, groupBy, app: each }));
    return this.#reportOf(groupBy === "day" ? sumsByDay(rows) : rows, { range, groupBy });
  }

  /** Reports the usage of one machine by day. The machine may have been destroyed, and its app, too. */
  ofMachine(app: string, id: string, { from, to }: Pick<UsageQuestion, "from" | "to">): UsageReport {
    if (this.#store.machine(id)?.app !== app) {
      const message = `No usage of a machine ${id.slice(0, 63)} of app ${app.slice(0, 63)} was ever recorded. See \`hibernaut usage --app ${app.slice(0, 63)} --by machine\`.`;
      throw new HibernautError("not_found", message, { app, machine_id: id });
    }
    return this.#report({ range: usageRange({ from, to }, this.#now()), groupBy: "day", app, machine: id });
  }

  /** Whether a machine with exactly this id was ever metered in the app. */
  knowsMachine(app: string, id: string): boolean {
    return this.#store.machine(id)?.app === app;
  }

  /** Returns what each app has used since the beginning. */
  totals(): Map<string, Amounts> {
    const totals = new Map<string, Amounts>();
    for (const { name, period: _, ...sum } of this.#store.sums({ grain: "app", ranges: [ALL_TIME_RANGE] }))
      totals.set(name, sum);
    const now = this.#now();
    for (const open of this.#store.open()) {
      const sum = totals.get(open.app) ?? noAmounts();
      addAmounts(sum, accrued(open, Math.max(0, now - open.since)));
      totals.set(open.app, sum);
    }
    return totals;
  }

  #report(query: ReportQuery): UsageReport {
    return this.#reportOf(reportRows(this.#store, query), query);
  }

  #reportOf(groups: readonly UsageGroup[], { range, groupBy, app }: ReportQuery): UsageReport {
    const rows = groups.map((row) => this.#priced(row));
    const sum = noAmounts();
    for (const { amounts } of rows) addAmounts(sum, amounts);
    const total = this.#priced({ app: app ?? null, machine: null, day: null, amounts: sum });
    return { since: range.since, until: range.until, groupBy, currency: this.#prices?.currency ?? null, rows, total };
  }

  #priced(row: UsageGroup): PricedGroup {
    return { ...row, cost: this.#prices === undefined ? null : costOf(row.amounts, this.#prices) };
  }
}

/** Adds up the days of several apps. */
function sumsByDay(rows: readonly UsageGroup[]): UsageGroup[] {
  const days = new Map<string | null, UsageGroup>();
  for (const { day, amounts } of rows) {
    const sum = days.get(day) ?? { app: null, machine: null, day, amounts: noAmounts() };
    addAmounts(sum.amounts, amounts);
    days.set(day, sum);
  }
  return [...days.values()];
}
