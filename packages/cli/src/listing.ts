/** What all commands that list have in common. */
import type { Option, OptionValues } from "./command.ts";
import { table } from "./terminal.ts";

/** The option of every command that lists. */
export const QUIET = { flags: "-q, --quiet", description: "print only ids, one per line" } as const satisfies Option;

/** The value of {@link QUIET}. */
type ListOptions = OptionValues<[typeof QUIET]>;

/** How items are shown in a list. */
interface Listing<T> {
  head: readonly string[];
  row(item: T): readonly string[];
  /** What commands accept to name the item. */
  id(item: T): string;
  /** What to print when there are none. */
  empty: string;
}

/** A table; with `quiet`, only ids, and nothing when there are none. */
export function listText<T>(items: readonly T[], { head, row, id, empty }: Listing<T>, { quiet }: ListOptions): string {
  if (quiet) return items.map(id).join("\n");
  return items.length === 0 ? empty : table([head, ...items.map(row)]);
}
