/** What all commands that list have in common. */
import type { HibernautClient } from "@hibernaut/client";
import { type Command, command, type Option, type OptionValues } from "./command.ts";
import type { Context } from "./context.ts";
import { type OutputOptions, outputTable, TABLE } from "./output-format.ts";
import type { Spare } from "./terminal.ts";

const QUIET = { flags: "-q, --quiet", description: "print only ids, one per line" } as const satisfies Option;

/** The options of every command that lists. */
export const LISTING = [QUIET, ...TABLE] as const satisfies readonly Option[];

export type ListOptions = OptionValues<[typeof QUIET]> & OutputOptions;

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

/** A command that lists what it fetches; its name is `list`, and also `ls`, unless it has another one. */
interface ListDefinition<T> extends Omit<Command, "name" | "aliases" | "options" | "run"> {
  name?: string;
  fetch(client: HibernautClient, context: Context, args: string[]): Promise<readonly T[]>;
  show(context: Context, items: readonly T[], client: HibernautClient): Listing<T>;
}

/** Defines a command that prints a list. The type of the items follows from what it fetches. */
export function listCommand<T>({ name, fetch, show, ...definition }: ListDefinition<T>): Command {
  return command({
    ...(name === undefined ? { name: "list", aliases: ["ls"] } : { name }),
    ...definition,
    options: LISTING,
    async run(context, args, options) {
      const client = await context.client();
      const items = await fetch(client, context, args);
      return { document: items, text: listText(items, show(context, items, client), options) };
    },
  });
}
