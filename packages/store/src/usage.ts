/** Usage in the database, for those who read it. `usage-meter.ts` writes it. */
import type { PeriodRange } from "@hibernaut/domain/periods";
import { AMOUNTS } from "@hibernaut/domain/usage";
import type { Database } from "better-sqlite3";
import type { OpenUsage, Traffic, UsageQuery, UsageStore, UsageSum } from "./contract.ts";
import { atomic } from "./database.ts";
import { OPEN_COLUMNS, type UsageMeter } from "./usage-meter.ts";

interface NameRow {
  name: string;
  app: string;
  title: string | null;
}

/** Returns the repository of usage in an open, migrated database. */
export function usageStore(db: Database, meter: UsageMeter): UsageStore {
  const openAll = db.prepare<[], OpenUsage>(`SELECT ${OPEN_COLUMNS} FROM usage_open`);
  const openOf = db.prepare<[string], OpenUsage>(`SELECT ${OPEN_COLUMNS} FROM usage_open WHERE app = ?`);
  const nameOf = db.prepare<[string], NameRow>("SELECT name, app, title FROM usage_names WHERE name = ?");
  const names = db.prepare<[], NameRow>("SELECT name, app, title FROM usage_names");
  const namesOf = db.prepare<[string], NameRow>("SELECT name, app, title FROM usage_names WHERE app = ?");
  const knows = db.prepare<[string]>("SELECT 1 FROM usage_names WHERE app = ? LIMIT 1");

  return {
    open: (app) => (app === undefined ? openAll.all() : openOf.all(app)),
    sums: (query) => db.prepare<[SumParameters], UsageSum>(sumsSql(query)).all(parametersOf(query)),
    machine(id) {
      const row = nameOf.get(id);
      if (row === undefined || row.title === null) return undefined;
      return { app: row.app, name: row.title };
    },
    names: (app) => new Map((app === undefined ? names.all() : namesOf.all(app)).map((row) => [row.name, row])),
    knowsApp: (app) => knows.get(app) !== undefined,
    measureLayer: atomic(db, (id: string, layerMb: number) => meter.layer(id, layerMb)),
    addTraffic: atomic(db, (traffic: ReadonlyMap<string, Traffic>) => {
      for (const [id, { bytesIn, bytesOut }] of traffic) meter.count(id, { bytes_in: bytesIn, bytes_out: bytesOut });
    }),
  };
}

/** SQL has a place for each: a statement with a variable number of ranges would be another one for each number. */
const MOST_RANGES = 3;
/** No period is in it. */
const EMPTY: PeriodRange = { first: -1, last: -1, weight: 1 };

interface SumParameters {
  grain: string;
  app: string;
  name: string;
  [ofRange: `first${number}` | `last${number}` | `weight${number}`]: number;
}

/** The parameters of {@link sumsSql}. */
export function parametersOf({ grain, ranges, app = "", machine }: UsageQuery): SumParameters {
  const parameters: SumParameters = { grain, app, name: machine ?? (grain === "app" ? app : "") };
  for (let index = 0; index < MOST_RANGES; index += 1) {
    const { first, last, weight } = ranges[index] ?? EMPTY;
    parameters[`first${index}`] = first;
    parameters[`last${index}`] = last;
    parameters[`weight${index}`] = weight;
  }
  return parameters;
}

/**
 * The statement that adds up sums. It goes from name to name and, below each, from range to range: rows are found by the
 * primary key, are all part of the answer, and come in the order in which they are added up, so that nothing is sorted.
 * A year of 10,000 machines is up to 440,000 rows, whatever they did in it.
 */
export function sumsSql({ grain, app, machine, byPeriod = false }: UsageQuery): string {
  const columns = AMOUNTS.map((column) => `sum(s.${column} * r.weight) AS ${column}`).join(", ");
  const ranges = Array.from(
    { length: MOST_RANGES },
    (_, index) => `(@first${index}, @last${index}, @weight${index})`,
  ).join(", ");
  return `
    WITH ranges (first, last, weight) AS (VALUES ${ranges})
    SELECT ${byPeriod ? "'' AS name, s.period AS period" : "n.name AS name, 0 AS period"}, ${columns}
    FROM ${namesSql({ grain, app, machine })} n CROSS JOIN ranges r CROSS JOIN usage_sums s
    WHERE s.grain = @grain AND s.name = n.name AND s.period BETWEEN r.first AND r.last
    GROUP BY ${byPeriod ? "s.period" : "n.name"}
  `;
}

/** Whose sums are read. */
function namesSql({ grain, app, machine }: Pick<UsageQuery, "grain" | "app" | "machine">): string {
  if (grain === "all" || machine !== undefined || (grain === "app" && app !== undefined))
    return "(SELECT @name AS name)";
  if (grain === "app") return "(SELECT DISTINCT app AS name FROM usage_names ORDER BY app)";
  return app === undefined ? "usage_names" : "(SELECT name FROM usage_names WHERE app = @app)";
}
