/** Requests and responses of the engine as an app that speaks HTTP/2 has them (RFC 9113 8). Pure. */
import { constants, type OutgoingHttpHeaders } from "node:http2";
import type { Field } from "../contract.ts";
import { CHUNKED, control, type Framing, NO_BODY, parseFields } from "./fields.ts";
import { fieldKey, Malformed } from "./grammar.ts";
import { type Origin, reasonOf, requestHead } from "./heads.ts";
import type { RequestMessage } from "./request.ts";
import { bodiless, type ResponseMessage } from "./response.ts";

/** Fields of HTTP/1.1 that HTTP/2 has other means for, or none. */
const ONLY_HTTP1: ReadonlySet<string> = new Set(["host", "connection", "transfer-encoding", "upgrade"]);
const NO_OPTIONS: readonly string[] = [];

/** Returns the head of a request as names and values in turns. What passes is decided where HTTP/1.1 heads are made. */
export function http2RequestHead(message: RequestMessage, origin: Origin, source: string | undefined): string[] {
  const text = requestHead(message, origin, source);
  const { HTTP2_HEADER_METHOD, HTTP2_HEADER_SCHEME, HTTP2_HEADER_AUTHORITY, HTTP2_HEADER_PATH } = constants;
  const head = [HTTP2_HEADER_METHOD, message.method, HTTP2_HEADER_SCHEME, "http"];
  head.push(HTTP2_HEADER_AUTHORITY, message.authority, HTTP2_HEADER_PATH, message.target);
  const begin = text.indexOf("\r\n") + 2;
  for (const { key, value } of parseFields(text.slice(0, -2), begin, Number.POSITIVE_INFINITY))
    if (!ONLY_HTTP1.has(key)) head.push(key, value);
  return head;
}

/**
 * Reads the head of a response. Throws {@link Malformed}.
 *
 * @param raw names and values in turns
 * @param ended whether the response consists of its head only
 */
export function parseHttp2Response(raw: readonly string[], method: string, ended: boolean): ResponseMessage {
  const fields: Field[] = [];
  let status = 0;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    if (name === ":status") status = Number(value);
    else fields.push(fieldOf(name, value));
  }
  if (!(status >= 100 && status <= 999)) throw new Malformed("A response needs a status.");
  const { length, replay } = control(fields, "1.1");
  const framing = ended || bodiless(status, method) ? NO_BODY : framingOf(length);
  return {
    ...{ status, reason: reasonOf(status), fields, framing, length, replay },
    ...{ connection: NO_OPTIONS, keepAlive: true, upgrade: undefined },
  };
}

/** Returns the trailers. Throws {@link Malformed}. */
export function parseHttp2Trailers(raw: readonly string[]): Field[] {
  const fields: Field[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) fields.push(fieldOf(raw[at] ?? "", raw[at + 1] ?? ""));
  return fields;
}

function framingOf(length: number | undefined): Framing {
  return length === undefined ? CHUNKED : { kind: "length", length };
}

/** No line breaks: the client may speak HTTP/1.1, where they would begin another field. */
function fieldOf(name: string, value: string): Field {
  const key = fieldKey(name);
  if (key === undefined || /[\r\n\0]/.test(value)) throw new Malformed("A field of the response is not valid.");
  return { name, key, value };
}

/** Returns the fields by name. A field that occurs several times becomes a list. */
export function toHeaders(fields: readonly Field[]): OutgoingHttpHeaders {
  const headers: Record<string, string | string[] | number> = Object.create(null) as Record<string, string>;
  for (const { key, value } of fields) {
    const before = headers[key];
    headers[key] = before === undefined ? value : [before, value].flat().map(String);
  }
  return headers;
}
