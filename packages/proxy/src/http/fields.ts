/** Field lines, and what they say about the framing of the message (RFC 9110 5, RFC 9112 6). */
import type { Field } from "../contract.ts";
import { fieldKey, listed, Malformed, TooLarge, trimmed } from "./grammar.ts";

/** How a body is delimited. */
export type Framing =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly length: number }
  | { readonly kind: "chunked" }
  | { readonly kind: "close" };

export const NO_BODY: Framing = { kind: "none" };
export const CHUNKED: Framing = { kind: "chunked" };
export const UNTIL_CLOSE: Framing = { kind: "close" };

/** What the fields say that concern only this connection. */
interface Control {
  readonly length: number | undefined;
  readonly chunked: boolean;
  /** The options of `Connection`, in lower case. */
  readonly connection: readonly string[];
  readonly upgrade: string | undefined;
  /** Of a response: where the app sends its request on to. */
  readonly replay: string | undefined;
}

const NO_OPTIONS: readonly string[] = [];

/**
 * The fields of the last head on a connection, and the text they were parsed from. The next head often has the same ones:
 * clients repeat themselves, and so does an app within a second of its `Date`.
 */
export interface FieldMemory {
  text: string;
  fields: readonly Field[];
}

/** Longer heads are not remembered, as a connection keeps what it remembers while it is idle. */
const MEMORY_CHARS = 2048;

/**
 * Returns the fields of `text`, beginning at `from`. Every line ends in CR LF, as {@link HeadReader} ensures.
 *
 * @param before what the connection remembers of the last head, which is replaced
 */
export function parseFields(text: string, from: number, most: number, before?: FieldMemory): readonly Field[] {
  if (before === undefined || text.length > MEMORY_CHARS) return parseLines(text, from, most);
  const part = text.slice(from);
  if (part !== before.text) {
    before.fields = parseLines(text, from, most);
    before.text = part;
  }
  return before.fields;
}

function parseLines(text: string, from: number, most: number): Field[] {
  const fields: Field[] = [];
  for (let at = from; at < text.length; ) {
    if (fields.length === most) throw new TooLarge("head", `A head may have up to ${most} fields.`);
    const end = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    const name = text.slice(at, colon === -1 || colon > end ? end : colon);
    // Folded lines begin with whitespace, and whitespace before the colon is an old trick: neither is a token.
    const key = fieldKey(name);
    if (key === undefined || colon === -1 || colon > end)
      throw new Malformed("A field needs a valid name, directly followed by a colon.");
    fields.push({ name, key, value: trimmed(text, colon + 1, end) });
    at = end + 2;
  }
  return fields;
}

/** Reads what frames the message. Refuses anything that two readers could understand differently. */
export function control(fields: readonly Field[], version: "1.0" | "1.1"): Control {
  let length: number | undefined;
  let chunked = false;
  let connection = NO_OPTIONS;
  let upgrade: string | undefined;
  let replay: string | undefined;
  let flyReplay: string | undefined;
  for (const { key, value } of fields) {
    switch (key) {
      case "content-length":
        if (length !== undefined) throw new Malformed("Content-Length may occur only once.");
        length = contentLength(value);
        break;
      case "transfer-encoding":
        if (chunked || !isChunked(value))
          throw new Malformed("Transfer-Encoding must be `chunked` and may occur only once.");
        chunked = true;
        break;
      case "content_length":
      case "transfer_encoding":
        // Gateways that turn fields into variables cannot tell these from the real ones.
        throw new Malformed("A field that frames the message must be spelled with a hyphen.");
      case "connection":
        connection = connection === NO_OPTIONS ? listed(value) : [...connection, ...listed(value)];
        break;
      case "upgrade":
        // An empty field names no protocol.
        if (value !== "") upgrade = upgrade === undefined ? value : `${upgrade}, ${value}`;
        break;
      // A field that occurs twice is no longer one that can be followed.
      case "hibernaut-replay":
        replay = replay === undefined ? value : `${replay};${value}`;
        break;
      case "fly-replay":
        flyReplay = flyReplay === undefined ? value : `${flyReplay};${value}`;
        break;
    }
  }
  if (chunked && length !== undefined)
    throw new Malformed("Content-Length and Transfer-Encoding must not occur together.");
  if (chunked && version === "1.0") throw new Malformed("HTTP/1.0 does not support Transfer-Encoding.");
  return { length, chunked, connection, upgrade, replay: replay ?? flyReplay };
}

/** Names of codings are case-insensitive (RFC 9112 7). Nearly all are in lower case, which is checked first. */
function isChunked(coding: string): boolean {
  return coding === "chunked" || coding.toLowerCase() === "chunked";
}

/** Accepts digits only: no list, no sign, and small enough for a number to hold exactly. */
function contentLength(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new Malformed("Content-Length must be a number of up to 15 digits.");
  return Number(value);
}
