/** What the commands that print entries of a log have in common. */
import type { Option, Result } from "./command.ts";
import type { Context } from "./context.ts";
import { printLines } from "./pager.ts";

export const SINCE = {
  flags: "--since <when>",
  description: "only lines since then: 30s, 10m, 2h or 1d ago, or 2026-01-31 12:00 in your time zone",
} as const satisfies Option;
export const LIMIT = {
  flags: "-n, --limit <count>",
  description: "only the last lines, this many (default: 100, or 10000 with --since)",
  minimum: 0,
} as const satisfies Option;

/** How much of a machine's id is shown: enough to tell the machines of an app apart. */
export const SHORT_ID = 6;

interface PrintOptions {
  follow: boolean;
  pager?: boolean | undefined;
  raw?: boolean;
}

/** Prints each entry as a line, the newest in sight; with `--json`, as a document. */
export async function printEntries<T>(
  { json }: Context,
  entries: AsyncIterable<T>,
  lineOf: (entry: T) => string,
  { follow, pager = true, raw = false }: PrintOptions,
): Promise<Result> {
  async function* lines(): AsyncGenerator<string> {
    for await (const entry of entries) yield json ? JSON.stringify(entry) : lineOf(entry);
  }
  await printLines(lines(), { paged: !follow && !json && pager, start: "end", raw });
  return { document: undefined, text: "" };
}
