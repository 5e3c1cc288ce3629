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
  let forwardedFor = "";
  let [protocol, host, port] = [
    origin.secure ? "https" : "http",
    message.authority,
    message.port ?? (origin.secure ? 443 : 80),
  ].map(String) as [string, string, string];
  for (const { name, key, value } of message.fields) {
    switch (key) {
      case "x-forwarded-for":
        forwardedFor += `${value}, `;
        break;
      case "x-forwarded-proto":
        protocol = value;
        break;
      case "x-forwarded-host":
        host = value;
        break;
      case "x-forwarded-port":
        port = value;
        break;
      case "x-request-id":
      case "hibernaut-request-id":
      case "hibernaut-client-ip":
        break;
      case "te":
        if (/(^|[\s,])trailers\b/i.test(value)) text += "Connection: TE\r\nTE: trailers\r\n";
        break;
      default:
        if (!NOT_FORWARDED.has(key) && !message.connection.includes(key)) text += `${name}: ${value}\r\n`;
    }
  }
  if (message.upgrade !== undefined) text += `Connection: Upgrade\r\nUpgrade: ${message.upgrade}\r\n`;
  return `${text}${framingField(message.framing)}X-Forwarded-For: ${forwardedFor}${origin.peer}\r\nX-Forwarded-Proto: ${
    protocol
  }\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Port: ${port}\r\nX-Request-Id: ${
    origin.requestId
  }\r\nHibernaut-Request-Id: ${origin.requestId}\r\nHibernaut-Client-IP: ${origin.clientAddress}\r\nVia: ${
    message.httpVersion
  } ${PSEUDONYM}\r\n\r\n`;
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
