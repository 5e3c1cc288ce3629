/** Usage in the database, for those who read it. `usage-meter.ts` writes it. */
import type { Database } from "better-sqlite3";
import { AMOUNTS } from "../domain/usage.ts";
import type { OpenUsage, Traffic, UsageQuery, UsageStore, UsageSum } from "./contract.ts";
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
  const addTraffic = db.transaction((traffic: ReadonlyMap<string, Traffic>): void => {
    for (const [id, { bytesIn, bytesOut }] of traffic) meter.count(id, { bytes_in: bytesIn, bytes_out: bytesOut });
  });
  const measureLayer = db.transaction((id: string, layerMb: number): void => meter.layer(id, layerMb));

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
    measureLayer: (id, layerMb) => measureLayer.immediate(id, layerMb),
    addTraffic: (traffic) => addTraffic.immediate(traffic),
  };
}

interface SumParameters {
  grain: string;
  periods: string;
  app: string;
  name: string;
}

export function parametersOf({ grain, periods, app = "", machine }: UsageQuery): SumParameters {
  return { grain, periods: JSON.stringify(periods), app, name: machine ?? (grain === "app" ? app : "") };
}

/**
 * The statement that adds up sums. Periods come first and names second, so that every row that is read is found by the
 * primary key and is part of the answer: a year of 10,000 machines is 720,000 rows at most, whatever they did in it.
 */
export function sumsSql({ grain, app, machine, byPeriod = false }: UsageQuery): string {
  const one = machine !== undefined || grain === "all" || (grain === "app" && app !== undefined);
  const ofApp = grain === "machine" && machine === undefined && app !== undefined;
  const columns = AMOUNTS.map((column) => `sum(s.${column}) AS ${column}`).join(", ");
  const from = ofApp ? "usage_names n CROSS JOIN json_each(@periods) p" : "json_each(@periods) p";
  const where = [
    "s.grain = @grain AND s.period = p.value",
    ...(one ? ["s.name = @name"] : []),
    ...(ofApp ? ["n.app = @app AND s.name = n.name"] : []),
  ];
  return `
    SELECT ${byPeriod ? "'' AS name, s.period AS period" : "s.name AS name, 0 AS period"}, ${columns}
    FROM ${from} CROSS JOIN usage_sums s WHERE ${where.join(" AND ")}
    GROUP BY ${byPeriod ? "s.period" : "s.name"}
  `;
}
