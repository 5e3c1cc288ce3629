/** What a WebSocket over HTTP/2 lacks that an app expects over HTTP/1.1 (RFC 8441 5, RFC 6455 4). Pure, except for the key. */
import { createHash, randomBytes } from "node:crypto";
import { Malformed } from "./grammar.ts";
import type { Answer } from "./heads.ts";
import type { RequestMessage } from "./request.ts";
import type { ResponseMessage } from "./response.ts";

export const WEBSOCKET = "websocket";
/** RFC 6455 1.3. */
const KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const ACCEPT = "sec-websocket-accept";

/** Returns a value for `Sec-WebSocket-Key`. */
export function newKey(): string {
  return randomBytes(16).toString("base64");
}

/**
 * Returns why the app's response cannot be passed on. Over HTTP/2, every 2xx status means that the WebSocket is open, so
 * only an app that has really switched to it may be answered like that. Undefined for any other request.
 */
export function webSocketFault(
  { webSocketKey }: RequestMessage,
  { status, upgrade, fields }: ResponseMessage,
): Malformed | undefined {
  if (webSocketKey === undefined || (status !== 101 && (status < 200 || status > 299))) return undefined;
  if (status !== 101) return new Malformed(`It is ${status} where a WebSocket begins with 101.`);
  const accept = createHash("sha1")
    .update(webSocketKey + KEY_SUFFIX)
    .digest("base64");
  const agrees =
    upgrade?.toLowerCase() === WEBSOCKET && fields.some(({ key, value }) => key === ACCEPT && value === accept);
  return agrees
    ? undefined
    : new Malformed("Its Sec-WebSocket-Accept or its Upgrade is not the one that was asked for.");
}

/** Returns the 101 of an app as HTTP/2 has it. */
export function openedWebSocket(answer: Answer): Answer {
  return { ...answer, status: 200, reason: "", fields: answer.fields.filter(({ key }) => key !== ACCEPT) };
}
