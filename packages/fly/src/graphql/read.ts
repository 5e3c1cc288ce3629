/** Reads a query of GraphQL: what is asked for, with its variables and fragments put in. Pure. */
import { QueryError } from "./error.ts";
import { type Token, tokensOf } from "./tokens.ts";

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

/** Fragments may name each other: these end what would never end, or fill the memory. flyctl asks for 60 fields, 6 deep. */
const MOST_FIELDS = 500;
const MOST_DEEP = 15;

/** Throws a {@link QueryError} with what is wrong. */
export function readQuery(text: string, variables: Readonly<Record<string, unknown>>): Operation {
  const reader = new Reader(tokensOf(text), variables);
  const operation = reader.definitions();
  if (operation === undefined) throw new QueryError("The query asks for nothing.");
  return operation;
}

class Reader {
  readonly #tokens: readonly Token[];
  readonly #variables: Readonly<Record<string, unknown>>;
  /** Where the fields of each fragment begin. */
  readonly #fragments = new Map<string, number>();
  #at = 0;
  #count = 0;

  constructor(tokens: readonly Token[], variables: Readonly<Record<string, unknown>>) {
    this.#tokens = tokens;
    this.#variables = variables;
  }

  definitions(): Operation | undefined {
    let found: { kind: string; at: number } | undefined;
    while (this.#at < this.#tokens.length) {
      const kind = this.#peek() === "{" ? "query" : this.#name();
      const name = this.#is("name") ? this.#name() : "";
      // What a fragment is of, and the types of variables, say nothing that the rest does not.
      while (this.#at < this.#tokens.length && this.#peek() !== "{") this.#at += 1;
      if (kind === "fragment") this.#fragments.set(name, this.#at);
      else if (found !== undefined) throw new QueryError("Only one query is answered at a time.");
      else found = { kind, at: this.#at };
      this.#skipBraces();
    }
    if (found === undefined) return undefined;
    this.#at = found.at;
    return { kind: found.kind, fields: this.#selections(0) };
  }

  #selections(depth: number): Selection[] {
    if (depth > MOST_DEEP) throw new QueryError(`The query is more than ${MOST_DEEP} fields deep.`);
    const fields: Selection[] = [];
    this.#take("{");
    while (this.#peek() !== "}") {
      if (this.#peek() === "...") fields.push(...this.#spread(depth));
      else fields.push(this.#field(depth));
    }
    this.#take("}");
    return fields;
  }

  #field(depth: number): Selection {
    this.#count += 1;
    if (this.#count > MOST_FIELDS) throw new QueryError(`The query asks for more than ${MOST_FIELDS} fields.`);
    const first = this.#name();
    const name = this.#peek() === ":" ? this.#aliased() : first;
    const args = this.#peek() === "(" ? this.#pairs("(", ")") : {};
    const fields = this.#peek() === "{" ? this.#selections(depth + 1) : undefined;
    return { name, as: first, args, fields };
  }

  #aliased(): string {
    this.#take(":");
    return this.#name();
  }

  #spread(depth: number): Selection[] {
    this.#take("...");
    if (this.#peek() === "{") return this.#selections(depth + 1);
    const name = this.#name();
    if (name === "on") {
      this.#name();
      return this.#selections(depth + 1);
    }
    const start = this.#fragments.get(name);
    if (start === undefined) throw new QueryError(`There is no fragment ${JSON.stringify(name.slice(0, 60))}.`);
    const back = this.#at;
    this.#at = start;
    const fields = this.#selections(depth + 1);
    this.#at = back;
    return fields;
  }

  #pairs(open: string, close: string, depth = 0): Record<string, unknown> {
    // Without a prototype: names are the client's.
    const pairs = Object.create(null) as Record<string, unknown>;
    this.#take(open);
    while (this.#peek() !== close) {
      const name = this.#name();
      this.#take(":");
      pairs[name] = this.#value(depth);
    }
    this.#take(close);
    return pairs;
  }

  #value(depth = 0): unknown {
    if (depth > MOST_DEEP) throw new QueryError(`A value is more than ${MOST_DEEP} deep.`);
    const token = this.#peek();
    if (token === "{") return this.#pairs("{", "}", depth + 1);
    if (token === "[") {
      const list: unknown[] = [];
      this.#take("[");
      while (this.#peek() !== "]") list.push(this.#value(depth + 1));
      this.#take("]");
      return list;
    }
    if (token === "$") {
      this.#take("$");
      const name = this.#name();
      return Object.hasOwn(this.#variables, name) ? this.#variables[name] : undefined;
    }
    const { kind, text } = this.#next();
    if (kind === "text") return text;
    if (kind === "number") return Number(text);
    if (kind !== "name") throw new QueryError(`A value is expected instead of ${JSON.stringify(text)}.`);
    return text === "null" ? null : text === "true" ? true : text === "false" ? false : text;
  }

  #skipBraces(): void {
    let open = 0;
    do {
      const { text, kind } = this.#next();
      if (kind === "sign") open += text === "{" ? 1 : text === "}" ? -1 : 0;
    } while (open > 0);
  }

  #is(kind: Token["kind"]): boolean {
    return this.#tokens[this.#at]?.kind === kind;
  }

  /** The sign that comes next. Undefined if it is no sign. */
  #peek(): string | undefined {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new QueryError("The query ends too early.");
    return token.kind === "sign" ? token.text : undefined;
  }

  #next(): Token {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new QueryError("The query ends too early.");
    this.#at += 1;
    return token;
  }

  #take(sign: string): void {
    const { kind, text } = this.#next();
    if (kind !== "sign" || text !== sign)
      throw new QueryError(`${JSON.stringify(sign)} is expected instead of ${JSON.stringify(text.slice(0, 60))}.`);
  }

  #name(): string {
    const { kind, text } = this.#next();
    if (kind !== "name") throw new QueryError(`A name is expected instead of ${JSON.stringify(text.slice(0, 60))}.`);
    return text;
  }
}
