/** The head of a response, as an app sent it (RFC 9112 4, 6.3). */
import type { Field } from "../contract.ts";
import { CHUNKED, control, type FieldMemory, type Framing, NO_BODY, parseFields, UNTIL_CLOSE } from "./fields.ts";
import { Malformed, trimmed } from "./grammar.ts";
import type { Limits } from "./limits.ts";

export interface ResponseMessage {
  status: number;
  reason: string;
  fields: readonly Field[];
  framing: Framing;
  connection: readonly string[];
  /** Whether the connection may take another request. */
  keepAlive: boolean;
  /** What the connection becomes after a 101. */
  upgrade: string | undefined;
  /** The stated length: of the body, or of the body that a GET would have returned (HEAD, 304). */
  length: number | undefined;
  /** Where the app sends the request on to, which is answered by another machine then. */
  replay: string | undefined;
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/;

/**
 * Parses the lines of a head. Throws {@link Malformed}.
 *
 * @param method the method of the request: a response to HEAD never has a body
 * @param before what the connection remembers of the last head
 */
export function parseResponse(
  text: string,
  method: string,
  limits: Pick<Limits, "headFields">,
  before?: FieldMemory,
): ResponseMessage {
  const lineEnd = text.indexOf("\r\n");
  const match = STATUS_LINE.exec(text.slice(0, Math.max(lineEnd, 0)));
  if (match === null) throw new Malformed("A response must begin with HTTP/1.1 and a status.");
  const version = match[1] === "1" ? "1.1" : "1.0";
  const status = Number(match[2]);
  const reason = match[3] ?? "";
  const fields = parseFields(text, lineEnd + 2, limits.headFields, before);
  const { length, chunked, connection, upgrade, replay } = control(fields, version);
  const framing = bodiless(status, method) ? NO_BODY : chunked ? CHUNKED : lengthOrClose(length);
  const persistent = version === "1.1" ? !connection.includes("close") : connection.includes("keep-alive");
  return {
    status,
    reason: trimmed(reason, 0, reason.length),
    fields,
    framing,
    connection,
    keepAlive: persistent && framing.kind !== "close",
    upgrade,
    length,
    replay,
  };
}

/** Whether a response never has a body. */
export function bodiless(status: number, method: string): boolean {
  return method === "HEAD" || status === 204 || status === 304 || status < 200;
}

function lengthOrClose(length: number | undefined): Framing {
  return length === undefined ? UNTIL_CLOSE : { kind: "length", length };
}
