/** What commands that list have in common. */
import type { Option } from "./command.ts";
import { table } from "./terminal.ts";

/** Of every command that lists. */
export const QUIET: Option = { flags: "-q, --quiet", description: "print the ids only, one a line" };

/** The value of {@link QUIET}. */
export interface ListOptions {
  quiet?: boolean;
}

/** How things are shown in a list. */
export interface Listing<T> {
  head: readonly string[];
  row(item: T): readonly string[];
  /** What commands take for the thing. */
  id(item: T): string;
  /** What is said when there are none. */
  empty: string;
}

/** A table; with `quiet` ids only, and nothing where there are none. */
export function listText<T>(items: readonly T[], { head, row, id, empty }: Listing<T>, { quiet }: ListOptions): string {
  if (quiet) return items.map(id).join("\n");
  return items.length === 0 ? empty : table([head, ...items.map(row)]);
}
