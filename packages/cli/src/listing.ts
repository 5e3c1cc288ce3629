/** What all commands that list have in common. */
import type { Option, OptionValues } from "./command.ts";
import { type OutputOptions, outputTable, TABLE } from "./output-format.ts";
import type { Spare } from "./terminal.ts";

const QUIET = { flags: "-q, --quiet", description: "print only ids, one per line" } as const satisfies Option;

/** The options of every command that lists. */
export const LISTING = [QUIET, ...TABLE] as const satisfies readonly Option[];

/** The values of {@link LISTING}. */
export type ListOptions = OptionValues<[typeof QUIET]> & OutputOptions;

/** How items are shown in a list. */
interface Listing<T> {
  head: readonly string[];
  row(item: T): readonly string[];
  /** More columns, with `-o wide`. */
  wide?: { head: readonly string[]; row(item: T): readonly string[] };
  /** Columns that a narrow terminal goes without. */
  spare?: Spare;
  /** What commands accept to name the item. */
  id(item: T): string;
  /** What to print when there are none. */
  empty: string;
}

/** A table; with `quiet`, only ids, and nothing when there are none. */
export function listText<T>(items: readonly T[], listing: Listing<T>, options: ListOptions): string {
  const { head, row, wide, spare, id, empty } = listing;
  if (options.quiet) return items.map(id).join("\n");
  if (items.length === 0) return empty;
  if (options.output !== "wide" || wide === undefined) return outputTable([head, ...items.map(row)], options, spare);
  return outputTable([[...head, ...wide.head], ...items.map((item) => [...row(item), ...wide.row(item)])], options);
}
