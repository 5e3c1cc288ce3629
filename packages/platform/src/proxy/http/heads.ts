/** The heads we write: what the app is told of a request, and the client of a response. */
import { STATUS_CODES } from "node:http";
import type { Field, Wake } from "../contract.ts";
import type { Framing } from "./fields.ts";
import type { RequestMessage } from "./request.ts";
import type { ResponseMessage } from "./response.ts";

/** Our name in `Via`. */
const PSEUDONYM = "hibernaut";
/**
 * Fields that end at each hop (RFC 9110 7.6.1), and those that we write ourselves. `Proxy` is no field at all,
 * but CGI makes the variable HTTP_PROXY of it.
 */
const NOT_FORWARDED = new Set([
  "connection",
  "content-length",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);
/** The request's id and its client are for us to name. */
const NOT_TO_APPS = new Set([...NOT_FORWARDED, "x-request-id", "hibernaut-request-id", "hibernaut-client-ip"]);
/** Fields that {@link wayLines} writes anew. */
const WAY = new Set(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"]);
const TRAILERS = /(^|[\s,])trailers\b/i;
/** What a trailer must not bring: what frames, routes, or was decided on before it came (RFC 9110 6.5.1). */
const NOT_IN_TRAILERS = new Set([
  ...NOT_FORWARDED,
  "authorization",
  "cache-control",
  "content-encoding",
  "content-range",
  "content-type",
  "cookie",
  "expect",
  "proxy-authorization",
  "set-cookie",
  "trailer",
  "via",
  "x-request-id",
]);

/** What the engine knows of a request besides its message. */
export interface Origin {
  requestId: string;
  /** Address of the connection's other end, and of the client that it speaks for. */
  peer: string;
  clientAddress: string;
  secure: boolean;
}

/** The head of the request to the app. */
export function requestHead(message: RequestMessage, origin: Origin): string {
  let text = `${message.method} ${message.target} HTTP/1.1\r\nHost: ${message.authority}\r\n`;
  let way: Field[] | undefined;
  for (const one of message.fields) {
    const { name, key, value } = one;
    if (WAY.has(key)) (way ??= []).push(one);
    else if (key === "te" && TRAILERS.test(value)) text += "Connection: TE\r\nTE: trailers\r\n";
    else if (!NOT_TO_APPS.has(key) && !message.connection.includes(key)) text += `${name}: ${value}\r\n`;
  }
  if (message.upgrade !== undefined) text += `Connection: Upgrade\r\nUpgrade: ${message.upgrade}\r\n`;
  const { requestId } = origin;
  text += `${framingField(message.framing)}X-Request-Id: ${requestId}\r\nHibernaut-Request-Id: ${requestId}\r\n`;
  return text + (way === undefined ? usualWay(message, origin) : wayLines(message, origin, way));
}

/** The last lines that {@link usualWay} made: those of the next request are mostly the same. */
let usual = { peer: "", authority: "", secure: false, httpVersion: "", text: "" };

/** {@link wayLines} of a request that came from its client directly. */
function usualWay(message: RequestMessage, origin: Origin): string {
  const { authority, httpVersion } = message;
  const { peer, secure } = origin;
  const same = usual.peer === peer && usual.authority === authority && usual.httpVersion === httpVersion;
  if (!same || usual.secure !== secure)
    usual = { peer, authority, secure, httpVersion, text: wayLines(message, origin, []) };
  return usual.text;
}

/** Who asks, and which way the request came; and the end of the head. `given` is what trusted proxies say of that. */
function wayLines(message: RequestMessage, origin: Origin, given: readonly Field[]): string {
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

function framingField(framing: Framing): string {
  if (framing.kind === "chunked") return "Transfer-Encoding: chunked\r\n";
  return framing.kind === "length" ? `Content-Length: ${framing.length}\r\n` : "";
}

/** A response for the client, of the app or our own; how it is framed is decided by the client's protocol. */
export interface Answer {
  status: number;
  reason: string;
  fields: readonly Field[];
  framing: Framing;
  /** To be stated although no body follows (HEAD, 304). */
  length: number | undefined;
  /** The protocol that the app asks for with 426; HTTP/1 has a field for it. */
  upgrade?: string | undefined;
}

/** What of the app's response goes to the client, and what we have to add. */
export function answerOf(response: ResponseMessage, requestId: string, wake: Wake): Answer {
  const { status, reason, framing, length } = response;
  const fields = endToEnd(response.fields, response.connection);
  fields.push(
    field("Via", `1.1 ${PSEUDONYM}`),
    field("Hibernaut-Wake", `${wake.kind}; dur=${Math.round(wake.durationMs)}`),
    field("Hibernaut-Request-Id", requestId),
  );
  // 204 has no body that could have a length (RFC 9110 8.6).
  const asked = status === 426 ? { upgrade: response.upgrade } : undefined;
  return { status, reason, fields, framing, length: status === 204 ? undefined : length, ...asked };
}

/** An interim response: 100, 103 and whatever may come. */
export function interimOf({ status, reason, fields, connection }: ResponseMessage): Answer {
  return { status, reason, fields: endToEnd(fields, connection), framing: { kind: "none" }, length: undefined };
}

/** The fields that may pass. The app does not speak for us: its `Hibernaut-*` are dropped. */
function endToEnd(fields: readonly Field[], connection: readonly string[]): Field[] {
  return fields.filter(
    ({ key }) => !NOT_FORWARDED.has(key) && !connection.includes(key) && !key.startsWith("hibernaut-"),
  );
}

/** The trailers that may pass. */
export function passingTrailers(trailers: readonly Field[], forbidden: (key: string) => boolean): readonly Field[] {
  if (trailers.length === 0) return trailers;
  return trailers.filter(({ key }) => !NOT_IN_TRAILERS.has(key) && !forbidden(key));
}

/** The head as HTTP/1.1 writes it; `extra` are whole lines about framing and connection. */
export function responseHead({ status, reason, fields }: Answer, extra: string): string {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (const { name, value } of fields) text += `${name}: ${value}\r\n`;
  return `${text}${extra}\r\n`;
}

export function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

/** The usual words for a status. */
export function reasonOf(status: number): string {
  return STATUS_CODES[status] ?? "";
}
