/** Values of YAML in the forms that the compose specification allows. Pure. */

export type Value = string | number | boolean | null | Value[] | { [key: string]: Value };
export type Mapping = { [key: string]: Value };

export function isMapping(value: Value | undefined): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value, if it is a mapping, or else an empty one. */
export function mappingOf(value: Value | undefined): Mapping {
  return isMapping(value) ? value : {};
}

/** What a mapping has at a key of the file, which may be called like anything that all objects have. */
export function own<T>(of: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(of, key) ? of[key] : undefined;
}

/** A scalar as text; undefined for anything else. */
export function textOf(value: Value | undefined): string | undefined {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : undefined;
}

/** A text or a list of texts. */
export function textsOf(value: Value | undefined): string[] {
  return [value ?? []].flat().flatMap((one) => textOf(one) ?? []);
}

/**
 * A mapping, or a list of `name=value`: as pairs of name and value, null for one without a value, which has that of the
 * environment.
 */
export function pairsOf(value: Value | undefined): [string, string | null][] {
  if (isMapping(value)) return Object.entries(value).map(([name, one]) => [name, textOf(one) ?? null]);
  if (!Array.isArray(value)) return [];
  return value.flatMap((line): [string, string | null][] => {
    const text = textOf(line);
    if (text === undefined) return [];
    const at = text.indexOf("=");
    return [at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + 1)]];
  });
}

const UNITS_S: Record<string, number> = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** A duration such as `1m30s`, in seconds; undefined if it is not one. */
export function secondsOf(value: Value | undefined): number | undefined {
  const text = textOf(value);
  if (text === undefined || !/^(?:\d+(?:\.\d+)?(?:us|ms|s|m|h))+$/.test(text)) return undefined;
  return [...text.matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h)/g)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (UNITS_S[unit ?? ""] ?? 0),
    0,
  );
}

const UNITS_BYTES: Record<string, number> = {
  "": 1,
  b: 1,
  k: 1024,
  kb: 1024,
  m: 1024 ** 2,
  mb: 1024 ** 2,
  g: 1024 ** 3,
  gb: 1024 ** 3,
};

/** A size such as `512m`, in bytes; undefined if it is not one. */
export function bytesOf(value: Value | undefined): number | undefined {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*([a-z]{0,2})$/i.exec(textOf(value) ?? "") ?? [];
  const factor = UNITS_BYTES[unit.toLowerCase()];
  return amount === undefined || factor === undefined ? undefined : Number(amount) * factor;
}
