/** Reads a query of GraphQL: what is asked for, with its variables and fragments put in. Pure. */
import { Cursor } from "./cursor.ts";
import { QueryError } from "./error.ts";

/** A field that is asked for. */
export interface Selection {
  name: string;
  /** What the answer calls it. */
  as: string;
  args: Record<string, unknown>;
  /** What is asked of it. Undefined if nothing is: it is a plain value. */
  fields: Selection[] | undefined;
}

export interface Operation {
  kind: string;
  fields: Selection[];
}

/** Fragments, which count as fields, may name each other: these end what would never end. flyctl asks for 60 fields, 6 deep. */
const MOST_FIELDS = 500;
const MOST_DEEP = 15;

/** Throws a {@link QueryError} with what is wrong. */
export function readQuery(text: string, variables: Readonly<Record<string, unknown>>): Operation {
  const reader = new Reader(new Cursor(text), variables);
  const operation = reader.definitions();
  if (operation === undefined) throw new QueryError("The query asks for nothing.");
  return operation;
}

class Reader {
  readonly #cursor: Cursor;
  readonly #variables: Readonly<Record<string, unknown>>;
  /** Where the fields of each fragment begin. */
  readonly #fragments = new Map<string, number>();
  #count = 0;

  constructor(cursor: Cursor, variables: Readonly<Record<string, unknown>>) {
    this.#cursor = cursor;
    this.#variables = variables;
  }

  definitions(): Operation | undefined {
    let found: { kind: string; at: number } | undefined;
    while (!this.#cursor.isAtEnd()) {
      const kind = this.#cursor.sign() === "{" ? "query" : this.#cursor.name();
      const name = this.#cursor.isAtName() ? this.#cursor.name() : "";
      // What a fragment is of, and the types of variables, say nothing that the rest does not.
      for (let open = 0; open > 0 || this.#cursor.sign() !== "{"; ) {
        const { kind: token, text } = this.#cursor.next();
        if (token === "sign") open += text === "(" ? 1 : text === ")" ? -1 : 0;
      }
      if (kind === "fragment") this.#fragments.set(name, this.#cursor.at);
      else if (found !== undefined) throw new QueryError("Only one query is answered at a time.");
      else found = { kind, at: this.#cursor.at };
      this.#cursor.passBraces();
    }
    if (found === undefined) return undefined;
    this.#cursor.at = found.at;
    return { kind: found.kind, fields: this.#selections(0) };
  }

  #selections(depth: number): Selection[] {
    if (depth > MOST_DEEP) throw new QueryError(`The query is more than ${MOST_DEEP} fields deep.`);
    const fields: Selection[] = [];
    this.#cursor.pass("{");
    while (this.#cursor.sign() !== "}") {
      if (this.#cursor.sign() === "...") fields.push(...this.#spread(depth));
      else fields.push(this.#field(depth));
    }
    this.#cursor.pass("}");
    return fields;
  }

  #field(depth: number): Selection {
    this.#countOne();
    const first = this.#cursor.name();
    const name = this.#cursor.sign() === ":" ? this.#aliased() : first;
    const args = this.#cursor.sign() === "(" ? this.#pairs("(", ")") : {};
    const fields = this.#cursor.sign() === "{" ? this.#selections(depth + 1) : undefined;
    return { name, as: first, args, fields };
  }

  #countOne(): void {
    this.#count += 1;
    if (this.#count > MOST_FIELDS) throw new QueryError(`The query asks for more than ${MOST_FIELDS} fields.`);
  }

  #aliased(): string {
    this.#cursor.pass(":");
    return this.#cursor.name();
  }

  #spread(depth: number): Selection[] {
    this.#countOne();
    this.#cursor.pass("...");
    if (this.#cursor.sign() === "{") return this.#selections(depth + 1);
    const name = this.#cursor.name();
    if (name === "on") {
      this.#cursor.name();
      return this.#selections(depth + 1);
    }
    const start = this.#fragments.get(name);
    if (start === undefined) throw new QueryError(`There is no fragment ${JSON.stringify(name.slice(0, 60))}.`);
    const back = this.#cursor.at;
    this.#cursor.at = start;
    const fields = this.#selections(depth + 1);
    this.#cursor.at = back;
    return fields;
  }

  #pairs(open: string, close: string, depth = 0): Record<string, unknown> {
    // Without a prototype: names are the client's.
    const pairs = Object.create(null) as Record<string, unknown>;
    this.#cursor.pass(open);
    while (this.#cursor.sign() !== close) {
      const name = this.#cursor.name();
      this.#cursor.pass(":");
      pairs[name] = this.#value(depth);
    }
    this.#cursor.pass(close);
    return pairs;
  }

  #value(depth = 0): unknown {
    if (depth > MOST_DEEP) throw new QueryError(`A value is more than ${MOST_DEEP} deep.`);
    const token = this.#cursor.sign();
    if (token === "{") return this.#pairs("{", "}", depth + 1);
    if (token === "[") {
      const list: unknown[] = [];
      this.#cursor.pass("[");
      while (this.#cursor.sign() !== "]") list.push(this.#value(depth + 1));
      this.#cursor.pass("]");
      return list;
    }
    if (token === "$") {
      this.#cursor.pass("$");
      const name = this.#cursor.name();
      return Object.hasOwn(this.#variables, name) ? this.#variables[name] : undefined;
    }
    const { kind, text } = this.#cursor.next();
    if (kind === "text") return text;
    if (kind === "number") return Number(text);
    if (kind !== "name") throw new QueryError(`A value is expected instead of ${JSON.stringify(text)}.`);
    return text === "null" ? null : text === "true" ? true : text === "false" ? false : text;
  }
}
