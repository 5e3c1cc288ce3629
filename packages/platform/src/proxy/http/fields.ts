/** Field lines, and what they say about the message's frame (RFC 9110 5, RFC 9112 6). */
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

/** What the fields that concern this one connection say. */
export interface Control {
  readonly length: number | undefined;
  readonly chunked: boolean;
  /** The options of `Connection`, in lower case. */
  readonly connection: readonly string[];
  readonly upgrade: string | undefined;
}

const NO_OPTIONS: readonly string[] = [];

/** The fields of `text` from `from` on; every line ends in CR LF, as {@link HeadReader} gives it. */
export function parseFields(text: string, from: number, most: number): Field[] {
  const fields: Field[] = [];
  for (let at = from; at < text.length; ) {
    if (fields.length === most) throw new TooLarge("head", `A head takes at most ${most} fields.`);
    const end = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    const name = text.slice(at, colon === -1 || colon > end ? end : colon);
    // A folded line begins with a blank, and one before the colon is the oldest of all tricks: both are no token.
    const key = fieldKey(name);
    if (key === undefined || colon === -1 || colon > end)
      throw new Malformed("A field needs a valid name, directly followed by a colon.");
    fields.push({ name, key, value: trimmed(text, colon + 1, end) });
    at = end + 2;
  }
  return fields;
}

/** Reads what frames the message, and refuses whatever two readers could understand differently. */
export function control(fields: readonly Field[], version: "1.0" | "1.1"): Control {
  let length: number | undefined;
  let chunked = false;
  let connection = NO_OPTIONS;
  let upgrade: string | undefined;
  for (const { key, value } of fields) {
    switch (key) {
      case "content-length":
        if (length !== undefined) throw new Malformed("Content-Length must be given once.");
        length = contentLength(value);
        break;
      case "transfer-encoding":
        if (chunked || !isChunked(value)) throw new Malformed("Transfer-Encoding may only be `chunked`, once.");
        chunked = true;
        break;
      case "content_length":
      case "transfer_encoding":
        // Gateways that make variables of fields do not tell these from the real ones.
        throw new Malformed("A field that frames the message is spelt with a hyphen.");
      case "connection":
        connection = connection === NO_OPTIONS ? listed(value) : [...connection, ...listed(value)];
        break;
      case "upgrade":
        // An empty one names no protocol.
        if (value !== "") upgrade = upgrade === undefined ? value : `${upgrade}, ${value}`;
        break;
    }
  }
  if (chunked && length !== undefined) throw new Malformed("Content-Length and Transfer-Encoding exclude each other.");
  if (chunked && version === "1.0") throw new Malformed("HTTP/1.0 knows no Transfer-Encoding.");
  return { length, chunked, connection, upgrade };
}

/** Names of codings may be spelt in any case (RFC 9112 7); ours is the usual spelling, whoever reads it. */
function isChunked(coding: string): boolean {
  return coding === "chunked" || coding.toLowerCase() === "chunked";
}

/** Digits only, no list, no sign, and small enough to be counted exactly. */
function contentLength(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new Malformed("Content-Length must be a number of at most 15 digits.");
  return Number(value);
}
