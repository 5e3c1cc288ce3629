/** The heads that the proxy writes: of a request for the app, and of a response for the client. */
import { STATUS_CODES } from "node:http";
import { withoutSessions } from "@hibernaut/domain/session-cookie";
import type { Field, Lease, LeaseStart, OwnHeader } from "../contract.ts";
import type { Framing } from "./fields.ts";
import type { RequestMessage } from "./request.ts";
import type { ResponseMessage } from "./response.ts";

/** The proxy's name in `Via`. */
const PSEUDONYM = "hibernaut";
/**
 * Fields that end at each hop (RFC 9110 7.6.1), and those that the proxy writes itself or follows. `Proxy` is not a
 * standard field, but CGI turns it into the variable HTTP_PROXY.
 */
const NOT_FORWARDED = new Set([
  "connection",
  "content-length",
  "fly-replay",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);
/** Also not forwarded to apps: the proxy itself names the request's id and its client, and follows the wish for a machine. */
const NOT_TO_APPS = new Set([
  ...NOT_FORWARDED,
  "x-request-id",
  "hibernaut-request-id",
  "hibernaut-client-ip",
  "hibernaut-machine",
  "hibernaut-peer-request",
]);
/** Fields that {@link forwardedLines} rewrites. */
const FORWARDED = new Set(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"]);
export const TRAILERS: RegExp = /(^|[\s,])trailers\b/i;
/** Fields that are too late in a trailer: they frame, route, or were acted upon before (RFC 9110 6.5.1). */
const NOT_IN_TRAILERS = new Set([
  ...NOT_FORWARDED,
  "authorization",
  "cache-control",
  "content-encoding",
  "content-range",
  "content-type",
  "cookie",
  "expect",
  "hibernaut-machine",
  "proxy-authorization",
  "set-cookie",
  "trailer",
  "via",
  "x-request-id",
]);

/** Where a request comes from. */
export interface Origin {
  requestId: string;
  /** The address of the connection's other end, and of the client that it speaks for. */
  peer: string;
  clientAddress: string;
  secure: boolean;
}

/**
 * Returns the head of the request to the app.
 *
 * @param source the value of `fly-replay-src`, if another app sent the request on
 */
export function requestHead(message: RequestMessage, origin: Origin, source?: string): string {
  let text = `${message.method} ${message.target} HTTP/1.1\r\nHost: ${message.authority}\r\n`;
  let forwarded: Field[] | undefined;
  for (const one of message.fields) {
    const { name, key, value } = one;
    if (FORWARDED.has(key)) (forwarded ??= []).push(one);
    else if (key === "te" && TRAILERS.test(value)) text += "Connection: TE\r\nTE: trailers\r\n";
    else if (key === "cookie") text += cookieLine(name, value);
    else if (!NOT_TO_APPS.has(key) && !message.connection.includes(key)) text += `${name}: ${value}\r\n`;
  }
  if (message.upgrade !== undefined) text += `Connection: Upgrade\r\nUpgrade: ${message.upgrade}\r\n`;
  if (source !== undefined) text += `Fly-Replay-Src: ${source}\r\n`;
  const { requestId } = origin;
  text += `${framingField(message.framing)}X-Request-Id: ${requestId}\r\nHibernaut-Request-Id: ${requestId}\r\n`;
  return text + (forwarded === undefined ? directLines(message, origin) : forwardedLines(message, origin, forwarded));
}

function cookieLine(name: string, value: string): string {
  const cookies = withoutSessions(value);
  return cookies === undefined ? "" : `${name}: ${cookies}\r\n`;
}

/** The lines that {@link directLines} made last: those of the next request are usually the same. */
let last = { peer: "", authority: "", secure: false, httpVersion: "", text: "" };

/** Returns the {@link forwardedLines} of a request that came directly from its client. */
function directLines(message: RequestMessage, origin: Origin): string {
  const { authority, httpVersion } = message;
  const { peer, secure } = origin;
  const same = last.peer === peer && last.authority === authority && last.httpVersion === httpVersion;
  if (!same || last.secure !== secure)
    last = { peer, authority, secure, httpVersion, text: forwardedLines(message, origin, []) };
  return last.text;
}

/**
 * Returns the lines that say who asks and how the request got here, and the end of the head.
 *
 * @param given what trusted proxies say about that
 */
function forwardedLines(message: RequestMessage, origin: Origin, given: readonly Field[]): string {
  const { authority, httpVersion } = message;
  const said = (key: string) => given.filter((one) => one.key === key).map(({ value }) => value);
  const protocol = said("x-forwarded-proto").at(-1) ?? (origin.secure ? "https" : "http");
  const host = said("x-forwarded-host").at(-1) ?? authority;
  const port = said("x-forwarded-port").at(-1) ?? message.port ?? (origin.secure ? 443 : 80);
  return [
    `X-Forwarded-For: ${[...said("x-forwarded-for"), origin.peer].join(", ")}\r\n`,
    `X-Forwarded-Proto: ${protocol}\r\n`,
    `X-Forwarded-Host: ${host}\r\n`,
    `X-Forwarded-Port: ${port}\r\n`,
    `Hibernaut-Client-IP: ${origin.clientAddress}\r\n`,
    `Via: ${httpVersion} ${PSEUDONYM}\r\n\r\n`,
  ].join("");
}

/** Whether a field ends at each hop, or is written again there. */
export function endingHere(key: string): boolean {
  return NOT_FORWARDED.has(key);
}

export function framingField(framing: Framing): string {
  if (framing.kind === "chunked") return "Transfer-Encoding: chunked\r\n";
  return framing.kind === "length" ? `Content-Length: ${framing.length}\r\n` : "";
}

/** A response for the client, from the app or the proxy. The client's protocol decides how it is framed. */
export interface Answer {
  status: number;
  reason: string;
  fields: readonly Field[];
  framing: Framing;
  /** The length to state, even if no body follows (HEAD, 304). */
  length: number | undefined;
  /** The protocol that the app asks for with 426, for which HTTP/1 has a field. */
  upgrade?: string | undefined;
}

/**
 * Returns what the client gets of the app's response, with what the proxy adds.
 *
 * @param more fields that are added unless the app sends its own
 */
export function answerOf(
  response: ResponseMessage,
  requestId: string,
  { wake, ownHeaders }: Pick<Lease, "wake" | "ownHeaders">,
  more?: readonly Field[],
): Answer {
  const { status, reason, framing, length } = response;
  const passing = endToEnd(response.fields, response.connection);
  const fields = ownHeaders === undefined ? passing : replaced(passing, ownHeaders);
  fields.push(VIA, wakeField(wake), { name: "Hibernaut-Request-Id", key: "hibernaut-request-id", value: requestId });
  if (more !== undefined) fields.push(...more.filter((one) => !fields.some(({ key }) => key === one.key)));
  // 204 has no body that could have a length (RFC 9110 8.6).
  const statedLength = status === 204 ? undefined : length;
  const upgrade = status === 426 ? response.upgrade : undefined;
  return { status, reason, fields, framing, length: statedLength, upgrade };
}

const VIA = field("Via", `1.1 ${PSEUDONYM}`);
const RUNNING = field("Hibernaut-Wake", "running; dur=0");

/** Nearly every request finds its machine running. */
function wakeField({ kind, durationMs }: LeaseStart): Field {
  if (kind === "running" && durationMs === 0) return RUNNING;
  return field("Hibernaut-Wake", `${kind}; dur=${Math.round(durationMs)}`);
}

/** Returns the fields with the service's own in place of the app's. */
function replaced(fields: readonly Field[], own: readonly OwnHeader[]): Field[] {
  const others = fields.filter((one) => !own.some(({ key }) => key === one.key));
  return [...others, ...own.flatMap((header) => header.fields)];
}

/** Returns an interim response, such as 100 or 103, for the client. */
export function interimOf({ status, reason, fields, connection }: ResponseMessage): Answer {
  return { status, reason, fields: endToEnd(fields, connection), framing: { kind: "none" }, length: undefined };
}

/** Returns the fields that may pass. The app does not speak for the proxy: its `Hibernaut-*` fields are dropped. */
function endToEnd(fields: readonly Field[], connection: readonly string[]): Field[] {
  return fields.filter(
    ({ key }) => !NOT_FORWARDED.has(key) && !connection.includes(key) && !key.startsWith("hibernaut-"),
  );
}

/** Returns the trailers that may pass. */
export function passingTrailers(trailers: readonly Field[], forbidden: (key: string) => boolean): readonly Field[] {
  if (trailers.length === 0) return trailers;
  return trailers.filter(({ key }) => !NOT_IN_TRAILERS.has(key) && !forbidden(key));
}

/** Returns a response of the proxy's own, with all of its body. */
export function ownAnswer(status: number, fields: readonly Field[], body: Buffer): { answer: Answer; body: Buffer } {
  const framing = { kind: "length", length: body.length } as const;
  return { answer: { status, reason: reasonOf(status), fields, framing, length: body.length }, body };
}

/** Returns the head as HTTP/1.1 text. `extra` are whole lines about framing and connection. */
export function responseHead({ status, reason, fields }: Answer, extra: string): string {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (const { name, value } of fields) text += `${name}: ${value}\r\n`;
  return `${text}${extra}\r\n`;
}

export function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

/** Returns the usual words for a status. */
export function reasonOf(status: number): string {
  return STATUS_CODES[status] ?? "";
}
