/** Picks what was asked for from what there is. */
import { QueryError } from "./error.ts";
import type { Selection } from "./read.ts";

/** Asked only if the query does: what needs a request to the platform is one. */
export type Resolver = (args: Readonly<Record<string, unknown>>) => unknown;

/** A value that is given whole, whatever it is: nobody asks for fields of it. */
export class Whole {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/** What there is, by the names that queries use. Names that are missing here are refused. */
export interface Fields {
  [name: string]: Plain | Whole | Fields | readonly (Plain | Fields)[] | Resolver;
}
type Plain = string | number | boolean | null;

/**
 * A short query can ask for the machines of the app of each machine, and so on: these end that. flyctl asks for one thing at a time,
 * and for ten fields of each app of a list.
 */
const MOST = { requests: 100, fields: 100_000 } as const;

/** Rejects with a {@link QueryError} for a field that is not answered, and for a query that asks for too much. */
export async function answer(from: Fields, asked: readonly Selection[]): Promise<Record<string, unknown>> {
  return new Answer().of(from, asked, "a query");
}

class Answer {
  #requests = 0;
  #fields = 0;

  /** `owner` is what the fields are of, in words. */
  async of(from: Fields, asked: readonly Selection[], owner: string): Promise<Record<string, unknown>> {
    const found = Object.create(null) as Record<string, unknown>;
    for (const { name, as, args, fields } of asked) {
      const known = Object.hasOwn(from, name) ? from[name] : undefined;
      if (known === undefined) throw notAnswered(name, owner);
      this.#fields += 1;
      if (typeof known === "function") this.#requests += 1;
      if (this.#requests > MOST.requests || this.#fields > MOST.fields)
        throw new QueryError("The query asks for too much at once. Ask for less of each app or machine.");
      found[as] = await this.#pick(typeof known === "function" ? await known(args) : known, fields, name);
    }
    return found;
  }

  async #pick(value: unknown, fields: readonly Selection[] | undefined, name: string): Promise<unknown> {
    if (value === null) return null;
    if (Array.isArray(value)) {
      const all: unknown[] = [];
      // One after the other: each may ask the platform.
      for (const one of value) all.push(await this.#pick(one, fields, name));
      return all;
    }
    const isPlain = typeof value !== "object" || value instanceof Whole;
    if (isPlain && fields !== undefined) throw new QueryError(`${name} is a plain value: ask for no fields of it.`);
    if (!isPlain && fields === undefined) throw new QueryError(`${name} is not a plain value: say which fields of it.`);
    if (value instanceof Whole) return value.value;
    return isPlain ? value : this.of(value as Fields, fields ?? [], name);
  }
}

function notAnswered(name: string, owner: string): QueryError {
  return new QueryError(
    `${JSON.stringify(name.slice(0, 60))} of ${owner} is not answered here: GraphQL is for what flyctl's commands for apps and machines ask. The Machines API on this port has the rest, such as secrets at /v1/apps/<app>/secrets.`,
    "NOT_IMPLEMENTED",
  );
}
