/** Comma-separated values (RFC 4180), with a line feed as other tools of this system write it. */

type Value = string | number | null;

/** Returns a header of these keys, and the rows. Null is an empty field. */
export function csv(keys: readonly string[], rows: readonly Record<string, Value>[]): string {
  return [keys, ...rows.map((row) => keys.map((key) => row[key] ?? ""))]
    .map((values) => values.map((value) => quoted(String(value))).join(","))
    .join("\n");
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
