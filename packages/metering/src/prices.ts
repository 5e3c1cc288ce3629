/** What usage costs: the price file, and the sums that follow from it. */
import { readFileSync } from "node:fs";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Amounts } from "@hibernaut/domain/usage";
import { nearest } from "@hibernaut/lib/nearest";
import { messageOf } from "@hibernaut/lib/text";

/** Prices per unit, in `currency`. */
export interface Prices {
  /** ISO 4217, for example `EUR`. */
  currency: string;
  /** One CPU of a running machine for a second. */
  cpu_second: number;
  /** One GB of memory of a running machine for a second. */
  memory_gb_second: number;
  /** One GB of writable layer or volume for 30 days. */
  storage_gb_month: number;
}

/** What something cost. */
export interface Cost {
  cpu: number;
  memory: number;
  storage: number;
  total: number;
  /** What it would have cost if every machine had run as long as it existed. */
  ifAlwaysRunning: number;
  /** The difference between the two. */
  savedBySleeping: number;
}

const UNITS = ["cpu_second", "memory_gb_second", "storage_gb_month"] as const;
const KEYS = ["currency", ...UNITS];
/** Above this, a price is a mistake such as a price per year in place of one per second. */
const MOST = 1_000_000;
const MB_PER_GB = 1024;
const MS_PER_S = 1000;
/** Months differ, and a price must not: a month has 30 days. */
export const MONTH_MS = 30 * 86_400_000;

/** Reads the price file. Throws `invalid_argument`, which names the file, what is wrong in it and what it accepts. */
export function readPrices(file: string): Prices {
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw refusal(file, `cannot be read as JSON: ${messageOf(error)}`);
  }
  return pricesOf(document, file);
}

/** Checks prices. `file` is named in errors. */
export function pricesOf(document: unknown, file: string): Prices {
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw refusal(file, `must be a JSON object with ${list(KEYS)}`);
  const given = document as Record<string, unknown>;
  for (const key of Object.keys(given)) if (!KEYS.includes(key)) throw refusal(file, unknownKey(key), key);
  const { currency } = given;
  if (typeof currency !== "string" || !Intl.supportedValuesOf("currency").includes(currency))
    throw refusal(
      file,
      `has the currency ${shown(currency)}. Use a code of ISO 4217, such as "EUR" or "USD"`,
      "currency",
    );
  const prices = Object.fromEntries(UNITS.map((unit) => [unit, priceOf(given[unit] ?? 0, unit, file)]));
  return { currency, ...(prices as Record<(typeof UNITS)[number], number>) };
}

/** Returns what was used at these prices. */
export function costOf(used: Readonly<Amounts>, prices: Prices): Cost {
  const memoryPrice = prices.memory_gb_second / MB_PER_GB / MS_PER_S;
  const cpu = (used.cpu_ms / MS_PER_S) * prices.cpu_second;
  const memory = used.memory_mb_ms * memoryPrice;
  // Snapshots are the price of sleeping that nobody pays: a suspended machine costs what a stopped one costs.
  const storage = ((used.layer_mb_ms + used.volume_mb_ms) / MB_PER_GB / MONTH_MS) * prices.storage_gb_month;
  const always = (used.whole_cpu_ms / MS_PER_S) * prices.cpu_second + used.whole_memory_mb_ms * memoryPrice + storage;
  const total = cpu + memory + storage;
  return { cpu, memory, storage, total, ifAlwaysRunning: always, savedBySleeping: always - total };
}

function priceOf(value: unknown, unit: string, file: string): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0 && value <= MOST) return value;
  throw refusal(file, `has the price ${shown(value)} for ${unit}. Use a number from 0 to ${MOST}`, unit);
}

function unknownKey(key: string): string {
  const meant = nearest(key, KEYS);
  const hint = meant === undefined ? `Use ${list(KEYS)}` : `Did you mean ${meant}?`;
  return `has the unknown key ${shown(key.slice(0, 100))}. ${hint}`;
}

function refusal(file: string, problem: string, field?: string): HibernautError {
  const end = /[.?]$/.test(problem) ? "" : ".";
  const message = `The price file ${file} ${problem}${end}`;
  return new HibernautError("invalid_argument", message, { setting: "HIBERNAUT_PRICE_FILE", ...(field && { field }) });
}

function list(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** A value as it is written in JSON, not longer than a line. */
function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "missing").slice(0, 100);
}
