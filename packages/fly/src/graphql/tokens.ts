/** The words of a query of GraphQL. Pure. */
import { QueryError } from "./error.ts";

export interface Token {
  kind: "sign" | "name" | "number" | "text";
  /** As it is meant: a text is without its quotes. */
  text: string;
}

/** Blanks, commas and comments mean nothing. A text in three quotes may have lines. */
const TOKEN =
  /[\s,\ufeff]+|#[^\n]*|(?<sign>\.\.\.|[{}()[\]:$!=|&])|(?<name>[A-Za-z_]\w*)|(?<number>-?\d[\d.eE+-]*)|"""(?<block>[^]*?)"""|(?<text>"(?:[^"\\\n]|\\.)*")/y;

/** Throws a {@link QueryError} for what is not GraphQL, and for directives: without them, the answer would be another. */
export function tokensOf(query: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < query.length) {
    const at = TOKEN.lastIndex;
    const groups = TOKEN.exec(query)?.groups;
    if (groups === undefined) throw notRead(query.slice(at, at + 20));
    const { sign, name, number, block, text } = groups;
    if (sign !== undefined) tokens.push({ kind: "sign", text: sign });
    else if (name !== undefined) tokens.push({ kind: "name", text: name });
    else if (number !== undefined) tokens.push({ kind: "number", text: number });
    else if (block !== undefined) tokens.push({ kind: "text", text: block });
    else if (text !== undefined) tokens.push({ kind: "text", text: unquoted(text) });
  }
  return tokens;
}

/** The rules for a text are those of JSON. */
function unquoted(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    throw notRead(text.slice(0, 20));
  }
}

function notRead(rest: string): QueryError {
  const words = rest.startsWith("@") ? "Directives are not read here" : "This is not GraphQL";
  return new QueryError(`${words}: ${JSON.stringify(rest)}.`);
}
