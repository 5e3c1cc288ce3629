/** What docs/metrics.md says, and what a scrape returns, in one form. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../../../..");
export const MONITORING = join(ROOT, "examples/monitoring");

export interface Metric {
  type: string;
  /** By label: its values, or undefined when there may be any. */
  labels: Map<string, Set<string> | undefined>;
}

/** The metrics of the tables in docs/metrics.md. */
export function documented(text = readFileSync(join(ROOT, "docs/metrics.md"), "utf8")): Map<string, Metric> {
  const rows = [...text.matchAll(/^\| `([a-z_]+)` \| (gauge|counter|histogram) \| ([^|]*)\|/gm)];
  return new Map(rows.map(([, name = "", type = "", labels = ""]) => [name, { type, labels: labelsOf(labels) }]));
}

/** `state`: `a` `b`; `app`: any */
function labelsOf(cell: string): Metric["labels"] {
  const parts = cell.split(";").filter((part) => part.trim() !== "");
  return new Map(
    parts.map((part) => {
      const [label = "", ...values] = [...part.matchAll(/`(\w+)`/g)].map(([, word = ""]) => word);
      if (values.length === 0 && !part.includes("any")) throw new Error(`no values in ${part}`);
      return [label, values.length === 0 ? undefined : new Set(values)];
    }),
  );
}

export interface Sample {
  /** The metric's, without `_bucket`, `_sum` and `_count`. */
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Scrape {
  types: Map<string, string>;
  samples: Sample[];
}

/** Reads Prometheus' text format. */
export function parseScrape(text: string): Scrape {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  const samples = [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = "", labels = "", value]) => ({
    name: baseOf(name, types),
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, said]) => [key, said])),
    value: Number(value),
  }));
  return { types, samples };
}

function baseOf(name: string, types: Scrape["types"]): string {
  const base = name.replace(/_(?:bucket|sum|count)$/, "");
  return types.get(base) === "histogram" ? base : name;
}

/** Compares a scrape with the document: what is not in it, and what has another type, label or value than it says. */
export function surprises({ types, samples }: Scrape, known = documented()): string[] {
  const found = new Set<string>();
  for (const [name, type] of types) {
    const metric = known.get(name);
    if (metric === undefined) found.add(`${name} is not documented`);
    else if (metric.type !== type) found.add(`${name} is a ${type}, documented as a ${metric.type}`);
  }
  for (const { name, labels } of samples) {
    const metric = known.get(name);
    if (metric === undefined) continue;
    for (const [label, value] of Object.entries(labels)) {
      if (label === "le" && metric.type === "histogram") continue;
      const values = metric.labels.get(label);
      if (!metric.labels.has(label)) found.add(`${name} has the label ${label}`);
      else if (values !== undefined && !values.has(value)) found.add(`${name} has ${label}="${value}"`);
    }
    for (const label of metric.labels.keys()) if (!(label in labels)) found.add(`${name} lacks ${label}`);
  }
  return [...found];
}
