/** A place in a query, which moves on as it is read. */
import { QueryError } from "./error.ts";
import { type Token, tokensOf } from "./tokens.ts";

export class Cursor {
  readonly #tokens: readonly Token[];
  /** How many have been read. */
  at = 0;

  /** Throws a {@link QueryError} for a text that has other signs than GraphQL, as the methods do for what was not expected. */
  constructor(query: string) {
    this.#tokens = tokensOf(query);
  }

  isAtEnd(): boolean {
    return this.at >= this.#tokens.length;
  }

  isAtName(): boolean {
    return this.#tokens[this.at]?.kind === "name";
  }

  /** The sign that comes next. Undefined if it is something else. */
  sign(): string | undefined {
    const { kind, text } = this.#token();
    return kind === "sign" ? text : undefined;
  }

  next(): Token {
    const token = this.#token();
    this.at += 1;
    return token;
  }

  /** Passes over a sign that has to be there. */
  pass(sign: string): void {
    const { kind, text } = this.next();
    if (kind !== "sign" || text !== sign)
      throw new QueryError(`${JSON.stringify(sign)} is expected instead of ${JSON.stringify(text.slice(0, 60))}.`);
  }

  name(): string {
    const { kind, text } = this.next();
    if (kind !== "name") throw new QueryError(`A name is expected instead of ${JSON.stringify(text.slice(0, 60))}.`);
    return text;
  }

  /** Passes over what is in the braces that begin here. */
  passBraces(): void {
    let open = 0;
    do {
      const { text, kind } = this.next();
      if (kind === "sign") open += text === "{" ? 1 : text === "}" ? -1 : 0;
    } while (open > 0);
  }

  #token(): Token {
    const token = this.#tokens[this.at];
    if (token === undefined) throw new QueryError("The query ends too early.");
    return token;
  }
}
