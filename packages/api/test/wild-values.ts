/** Values for the schemas of the OpenAPI document: most fit, some almost, some not at all. */
import type { Random } from "./random.ts";

/** The keywords of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}

export type Schemas = Record<string, Schema>;

const TEXTS = ["x", "shop", "bank", "data", "on", "1m", "http", "/data", "GET", "2026-01-31T12:00:00Z", "*/5 * * * *"];
/** What is nearly the name of a host. */
export const HOSTS: readonly string[] = [
  "99999999999999999999",
  "1.99999999999",
  "0x7f.1",
  "127.1:5000",
  "www.example.com:99999",
  "ghcr.io:0",
  "a..b",
  "-a.example",
  "xn--.example",
  "[::1]:5000",
  "[::g]",
  `${"a.".repeat(126)}a`,
];
const WILD: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  2 ** 53,
  "",
  "\u0000",
  "../../etc/passwd",
  "'; DROP TABLE tokens; --",
  "🦔",
  "\ud800",
  "a".repeat(5000),
  [],
  [[[[]]]],
  {},
  { __proto__: { admin: true } },
  { constructor: { prototype: {} } },
  "${jndi:ldap://x}",
  "%00",
];
/** How deep values become. */
const MAX_DEPTH = 6;

/** Returns a value for a schema. One in eight parts of it is something else entirely. */
export function wildValue(schema: Schema, schemas: Schemas, random: Random, depth = 0): unknown {
  if (random.oneIn(8)) return random.pick(WILD);
  const { $ref, anyOf } = schema;
  if ($ref !== undefined) return wildValue(schemas[$ref.split("/").at(-1) ?? ""] ?? {}, schemas, random, depth);
  if (anyOf !== undefined) return wildValue(random.pick(anyOf), schemas, random, depth);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return random.pick(schema.enum);
  if (schema.type === "object") return wildObject(schema, schemas, random, depth);
  if (schema.type === "array") return wildArray(schema, schemas, random, depth);
  if (schema.type === "boolean") return random.oneIn(2);
  if (schema.type === "integer" || schema.type === "number") return wildNumber(schema, random);
  return schema.type === "null" ? null : random.pick(random.oneIn(4) ? HOSTS : TEXTS);
}

function wildObject(schema: Schema, schemas: Schemas, random: Random, depth: number): Record<string, unknown> {
  const { properties = {}, patternProperties = {}, required = [] } = schema;
  const names = Object.keys(properties).filter(
    (name) => required.includes(name) || (depth < MAX_DEPTH && random.oneIn(3)),
  );
  const entries = names.map((name) => [name, wildValue(properties[name] ?? {}, schemas, random, depth + 1)]);
  const [pattern] = Object.values(patternProperties);
  if (pattern !== undefined) entries.push([random.pick(TEXTS), wildValue(pattern, schemas, random, depth + 1)]);
  if (random.oneIn(20)) entries.push([String(random.pick(WILD)).slice(0, 100), 1]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

function wildArray(schema: Schema, schemas: Schemas, random: Random, depth: number): unknown[] {
  const { items = {}, minItems = 0, maxItems = 3 } = schema;
  const length =
    depth > MAX_DEPTH ? minItems : minItems + random.below(Math.min(maxItems, minItems + 2) - minItems + 1);
  return Array.from({ length }, () => wildValue(items, schemas, random, depth + 1));
}

function wildNumber({ minimum = 0, maximum = minimum + 100 }: Schema, random: Random): number {
  const edges = [minimum, maximum, minimum - 1, maximum + 1];
  return random.oneIn(3) ? random.pick(edges) : minimum + random.below(Math.min(maximum - minimum, 20) + 1);
}
