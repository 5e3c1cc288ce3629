/** Durations and sizes in the forms that people write. Pure, and part of the CLI's bundle. */

const SECONDS: Record<string, number> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 0.001, s: 1, m: 60, h: 3600 };
const MEGABYTES: Record<string, number> = { b: 1 / 1024 / 1024, k: 1 / 1024, m: 1, g: 1024, t: 1024 * 1024 };

/**
 * Reads `"1m30s"`, `"500ms"` or a number of `unit`, and returns seconds. Undefined for anything else.
 *
 * @example
 * parseSeconds("1m30s", "s"); // 90
 * parseSeconds(10000, "ms"); // 10
 */
export function parseSeconds(value: string | number, unit: "s" | "ms"): number | undefined {
  const text = String(value).trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) return rounded(Number(text) * (SECONDS[unit] ?? 1));
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g);
  return rounded([...parts].reduce((sum, [, count, name = ""]) => sum + Number(count) * (SECONDS[name] ?? 0), 0));
}

/**
 * Reads `"512mb"`, `"1 GB"`, `"1GiB"` or a number of `unit`, and returns megabytes of 1024 KB. Undefined for anything
 * else.
 *
 * @example
 * parseMegabytes("1gb", "m"); // 1024
 * parseMegabytes(10, "g"); // 10240
 */
export function parseMegabytes(value: string | number, unit: "m" | "g"): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(?:(b)|([kmgt])i?b?)?$/i.exec(String(value).trim());
  if (match === null) return undefined;
  const [, count, bytes, letter] = match;
  return rounded(Number(count) * (MEGABYTES[(bytes ?? letter ?? unit).toLowerCase()] ?? 1));
}

/** Writes `"15s"` or `"500ms"`: the form that a machine's configuration takes, with up to six digits. */
export function durationText(seconds: number): string {
  const isFine = seconds < 1000 && !Number.isInteger(seconds);
  return isFine ? `${Math.round(seconds * 1000)}ms` : `${Math.round(seconds)}s`;
}

/** Drops the error of binary fractions, so that 0.1 * 3 is 0.3. */
function rounded(value: number): number {
  return Math.round(value * 1e9) / 1e9;
}
