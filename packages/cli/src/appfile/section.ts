/**
 * Reads a table of an app file key by key, and remembers which keys were read: `finish` reports the others as unknown,
 * so that nothing in a file is dropped silently.
 */
import { elsewhere } from "./elsewhere.ts";
import type { Findings } from "./findings.ts";
import { nearest } from "./nearest.ts";
import type { Path } from "./positions.ts";
import { parseMegabytes, parseSeconds } from "./quantities.ts";

type Table = Record<string, unknown>;

/** Bounds, both included. */
interface Range {
  minimum: number;
  maximum: number;
}

/** One table. Every reader returns undefined for a key that is absent, or that is wrong and reported. */
export class Section {
  readonly path: Path;
  readonly findings: Findings;
  readonly #table: Table;
  readonly #known = new Set<string>();

  readonly #missing: (path: string) => string | undefined;

  constructor(table: Table, path: Path, findings: Findings, missing: (path: string) => string | undefined) {
    this.#table = table;
    this.path = path;
    this.findings = findings;
    this.#missing = missing;
  }

  /** The raw value; the key counts as known from now on. */
  raw(key: string): unknown {
    this.#known.add(key);
    return Object.hasOwn(this.#table, key) ? this.#table[key] : undefined;
  }

  get keys(): string[] {
    return Object.keys(this.#table);
  }

  has(key: string): boolean {
    return this.raw(key) !== undefined;
  }

  at(key: string): Path {
    return [...this.path, key];
  }

  error(key: string, message: string): undefined {
    this.findings.error(this.at(key), message);
  }

  warning(key: string, message: string): void {
    this.findings.warning(this.at(key), message);
  }

  string(key: string): string | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "string") return value;
    return this.#wrong(key, 'text in quotes, as in "value"', value);
  }

  choice<T extends string>(key: string, choices: readonly T[]): T | undefined {
    const value = this.string(key);
    const choice = choices.find((one) => one === value?.toLowerCase());
    if (value !== undefined && choice === undefined)
      this.error(key, `Unknown value "${value}". Use one of: ${choices.join(", ")}.`);
    return choice;
  }

  boolean(key: string): boolean | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "boolean") return value;
    return this.#wrong(key, "true or false", value);
  }

  /** True, false, or one word. */
  booleanOr<T extends string>(key: string, word: T): boolean | T | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "boolean") return value;
    return value === word ? word : this.#wrong(key, `true, false or "${word}"`, value);
  }

  /** A whole number. Digits in quotes are accepted, because old files have them. */
  integer(key: string, { minimum, maximum }: Range): number | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= minimum && number <= maximum) return number;
    return this.#wrong(key, `a whole number from ${minimum} to ${maximum}`, value);
  }

  /** A number above 0, with or without a fraction. */
  positive(key: string): number | undefined {
    const value = this.raw(key);
    if (value === undefined || (typeof value === "number" && value > 0)) return value;
    return this.#wrong(key, "a number above 0", value);
  }

  /** A list of texts; a single text is a list of one. */
  strings(key: string): string[] | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const list: unknown[] = Array.isArray(value) ? value : [value];
    if (list.every((one) => typeof one === "string")) return list;
    return this.#wrong(key, 'a list of texts, as in ["app"]', value);
  }

  /** Seconds; a number without a unit counts `unit`. */
  seconds(key: string, unit: "s" | "ms", maximum = Number.POSITIVE_INFINITY): number | undefined {
    const value = this.raw(key);
    if (value === undefined || value === "") return undefined;
    const seconds = isTextOrNumber(value) ? parseSeconds(value, unit) : undefined;
    if (seconds === undefined)
      return this.#wrong(key, 'a duration with the units ms, s, m or h, as in "30s" or "1m30s"', value);
    if (seconds > maximum) return this.error(key, `This is ${seconds} seconds; the maximum is ${maximum}.`);
    return seconds;
  }

  /** Megabytes; a number without a unit counts `unit`. */
  megabytes(key: string, unit: "m" | "g"): number | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const megabytes = isTextOrNumber(value) ? parseMegabytes(value, unit) : undefined;
    return megabytes ?? this.#wrong(key, 'a size, as in "512mb" or "1gb"', value);
  }

  /** Whether there is such a file next to the app file, as far as anyone looks. */
  finds(path: string): boolean {
    return this.#missing(path) === undefined;
  }

  /** Reports a file that the key names and that cannot be read. */
  requireFile(key: string, path: string | undefined): void {
    const why = path === undefined ? undefined : this.#missing(path);
    if (why !== undefined)
      this.error(key, `${path} cannot be read (${why}). Paths are relative to the directory of the app file.`);
  }

  /** A table. */
  section(key: string): Section | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (isTable(value)) return new Section(value, this.at(key), this.findings, this.#missing);
    return this.#wrong(key, `a table, as in [${key}]`, value);
  }

  /** An array of tables; a single table is an array of one. */
  sections(key: string): Section[] {
    const value = this.raw(key);
    if (value === undefined) return [];
    if (isTable(value)) return [new Section(value, this.at(key), this.findings, this.#missing)];
    if (Array.isArray(value) && value.every(isTable))
      return value.map((table, index) => new Section(table, [...this.at(key), index], this.findings, this.#missing));
    this.#wrong(key, `a table, as in [[${key}]]`, value);
    return [];
  }

  /** Warns of known keys that have no effect here, unless they ask for nothing (false, 0, empty). */
  ignored(keys: string | readonly string[], why: string): void {
    for (const key of typeof keys === "string" ? [keys] : keys)
      if (asksForSomething(this.raw(key))) this.warning(key, why);
  }

  /** Warns that the whole table has no effect. */
  ignoredWhole(why: string): void {
    for (const key of this.keys) this.#known.add(key);
    this.findings.warning(this.path, why);
  }

  /** Reports every key that was not read. */
  finish(): void {
    for (const key of this.keys.filter((one) => !this.#known.has(one))) {
      const place = elsewhere(key, this.path);
      const near = nearest(key, this.#known);
      const hint = place ? ` It belongs ${place}.` : near ? ` Did you mean \`${near}\`?` : "";
      this.warning(key, `Unknown key; it has no effect.${hint}`);
    }
  }

  #wrong(key: string, expected: string, value: unknown): undefined {
    return this.error(key, `Use ${expected}, not ${shown(value)}.`);
  }
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function isTextOrNumber(value: unknown): value is string | number {
  return typeof value === "string" || (typeof value === "number" && value >= 0);
}

function asksForSomething(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isTable(value)) return Object.keys(value).length > 0;
  return value !== undefined && value !== false && value !== 0 && value !== "";
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (isTable(value)) return "a table";
  if (value instanceof Date) return "a date";
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
