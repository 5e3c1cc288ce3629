/** The dashboard for Grafana, and what Grafana's model of dashboards (schema version 39) asks of it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import { MONITORING } from "./documents.ts";

const DataSource = Type.Object(
  { type: Type.Literal("prometheus"), uid: Type.Literal("${datasource}") },
  { additionalProperties: false },
);
const Cell = Type.Integer({ minimum: 0 });
const GridPos = Type.Object(
  { h: Type.Integer({ minimum: 1 }), w: Type.Integer({ minimum: 1, maximum: 24 }), x: Cell, y: Cell },
  { additionalProperties: false },
);
const Target = Type.Object({
  refId: Type.String({ pattern: "^[A-Z]$" }),
  datasource: DataSource,
  expr: Type.String({ minLength: 1 }),
  legendFormat: Type.String(),
});
const Panel = Type.Object({
  id: Type.Integer({ minimum: 1 }),
  type: Type.Union([Type.Literal("timeseries"), Type.Literal("stat")]),
  title: Type.String({ minLength: 1 }),
  description: Type.String(),
  datasource: DataSource,
  gridPos: GridPos,
  fieldConfig: Type.Object({
    defaults: Type.Object({ unit: Type.String({ minLength: 1 }) }),
    overrides: Type.Array(Type.Any()),
  }),
  options: Type.Object({}),
  targets: Type.Array(Target, { minItems: 1 }),
});
const Row = Type.Object({
  id: Type.Integer({ minimum: 1 }),
  type: Type.Literal("row"),
  title: Type.String({ minLength: 1 }),
  collapsed: Type.Boolean(),
  gridPos: GridPos,
  panels: Type.Array(Type.Any()),
});
const Variable = Type.Object({
  name: Type.String({ pattern: "^\\w+$" }),
  label: Type.String(),
  type: Type.Union([Type.Literal("datasource"), Type.Literal("query")]),
});
const Dashboard = Type.Object({
  // Grafana gives it one when it is imported.
  id: Type.Null(),
  uid: Type.String({ pattern: "^[a-zA-Z0-9_-]{1,40}$" }),
  title: Type.String({ minLength: 1 }),
  schemaVersion: Type.Literal(39),
  tags: Type.Array(Type.String()),
  time: Type.Object({ from: Type.String(), to: Type.String() }),
  templating: Type.Object({ list: Type.Array(Variable) }),
  annotations: Type.Object({ list: Type.Array(Type.Any()) }),
  panels: Type.Array(Type.Union([Row, Panel])),
});

export type DashboardModel = Static<typeof Dashboard>;

export function dashboard(): DashboardModel {
  return JSON.parse(readFileSync(join(MONITORING, "grafana-dashboard.json"), "utf8")) as DashboardModel;
}

/** The queries of all panels. */
export function expressionsOf({ panels }: DashboardModel): { panel: string; expr: string }[] {
  return panels.flatMap((panel) =>
    "targets" in panel ? panel.targets.map(({ expr }) => ({ panel: panel.title, expr })) : [],
  );
}

/** What Grafana would not read, or show wrongly. */
export function checkDashboard(model: DashboardModel): string[] {
  const wrong = [...Value.Errors(Dashboard, model)].map((error) => JSON.stringify(error));
  const ids = model.panels.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) wrong.push("two panels have one id");
  const taken = new Set<string>();
  for (const { title, gridPos } of model.panels) {
    const { x, y, w, h } = gridPos;
    if (x + w > 24) wrong.push(`${title} is wider than the dashboard`);
    for (let column = x; column < x + w; column += 1)
      for (let line = y; line < y + h; line += 1) {
        const cell = `${column} ${line}`;
        if (taken.has(cell)) wrong.push(`${title} covers another panel`);
        taken.add(cell);
      }
  }
  const names = new Set([...model.templating.list.map(({ name }) => name), "__rate_interval"]);
  for (const [, name = ""] of JSON.stringify(model).matchAll(/\$\{?(\w+)/g))
    if (!names.has(name)) wrong.push(`$${name} is not a variable`);
  return wrong;
}
