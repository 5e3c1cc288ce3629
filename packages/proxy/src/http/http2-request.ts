/** The head of an HTTP/2 request (RFC 9113 8.2, 8.3). nghttp2 has checked much of it, but the proxy does not rely on that. */
import { type Field, ProxyRefusal } from "../contract.ts";
import { CHUNKED, control, type Framing, NO_BODY } from "./fields.ts";
import { fieldKey, isToken, Malformed, splitAuthority, TooLarge } from "./grammar.ts";
import type { Limits } from "./limits.ts";
import { isTarget, type RequestMessage } from "./request.ts";
import { newKey, WEBSOCKET } from "./websocket.ts";

/** What a field value may contain: no control characters except tab (RFC 9110 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Fields of the handshake over HTTP/1.1, which has no place in HTTP/2 (RFC 8441 5.1). */
const HANDSHAKE: ReadonlySet<string> = new Set(["sec-websocket-key", "sec-websocket-accept"]);

/**
 * Reads a list of alternating names and values. Throws {@link Malformed} or a {@link ProxyRefusal}.
 *
 * @param ended whether the request consists of its head only
 */
export function parseHttp2Request(
  raw: readonly string[],
  ended: boolean,
  limits: Pick<Limits, "headFields" | "headBytes">,
): RequestMessage {
  const pseudo = new Map<string, string>();
  const fields = readFields(raw, pseudo, limits);
  const method = pseudo.get(":method") ?? "";
  const target = pseudo.get(":path") ?? "";
  if (!isToken(method)) throw new Malformed("A request needs a valid method.");
  const protocol = pseudo.get(":protocol");
  if (method !== "CONNECT" && protocol !== undefined) throw new Malformed("Only CONNECT may have a :protocol.");
  if (method === "CONNECT" && protocol !== WEBSOCKET)
    throw new ProxyRefusal(405, "method_not_allowed", "CONNECT is supported for WebSockets only.");
  if (!isTarget(protocol === undefined ? method : "GET", target))
    throw new Malformed("A request's path must begin with a slash and contain only ASCII.");
  const authority = authorityOf(pseudo.get(":authority"), fields);
  const split = splitAuthority(authority);
  if (split === undefined) throw new Malformed("A request needs a valid :authority.");
  const { length } = control(fields, "1.1");
  if (protocol !== undefined) {
    if (ended || length !== undefined) throw new Malformed("A WebSocket is neither empty nor of a certain length.");
    return webSocketRequest({ target, authority, ...split }, fields);
  }
  return {
    method,
    target,
    authority,
    ...split,
    httpVersion: "2.0",
    fields,
    framing: framingOf(ended, length),
    connection: [],
    keepAlive: true,
    upgrade: undefined,
  };
}

/** The request for a WebSocket as HTTP/1.1 has it, which apps understand: a GET that asks for an upgrade (RFC 6455 4.1). */
function webSocketRequest(
  where: Pick<RequestMessage, "target" | "authority" | "host" | "port">,
  fields: readonly Field[],
): RequestMessage {
  const key = newKey();
  return {
    ...where,
    method: "GET",
    httpVersion: "2.0",
    fields: [
      ...fields.filter((one) => !HANDSHAKE.has(one.key)),
      { name: "Upgrade", key: "upgrade", value: WEBSOCKET },
      { name: "Sec-WebSocket-Key", key: "sec-websocket-key", value: key },
    ],
    framing: NO_BODY,
    connection: [],
    keepAlive: true,
    upgrade: WEBSOCKET,
    webSocketKey: key,
  };
}

function framingOf(ended: boolean, length: number | undefined): Framing {
  if (length !== undefined && (length === 0 || !ended)) return { kind: "length", length };
  if (length !== undefined) throw new Malformed("A request without a body must not state a length.");
  return ended ? NO_BODY : CHUNKED;
}

function readFields(
  raw: readonly string[],
  pseudo: Map<string, string>,
  limits: Pick<Limits, "headFields" | "headBytes">,
): Field[] {
  const fields: Field[] = [];
  const cookies: string[] = [];
  let bytes = 0;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    bytes += name.length + value.length;
    if (!VALUE.test(value)) throw new Malformed("A field value must not contain control characters.");
    if (name.startsWith(":")) {
      if (pseudo.has(name)) throw new Malformed(`${name} may occur only once.`);
      pseudo.set(name, value);
      continue;
    }
    if (fieldKey(name) !== name) throw new Malformed("A field needs a valid name in lower case.");
    if (name === "transfer-encoding" || name === "connection" || name === "upgrade")
      throw new Malformed(`HTTP/2 does not support the field ${name}.`);
    // Parts of one field, which HTTP/1 only knows as a whole (RFC 9113 8.2.3).
    if (name === "cookie") cookies.push(value);
    else fields.push({ name, key: name, value });
  }
  if (cookies.length > 0) fields.push({ name: "cookie", key: "cookie", value: cookies.join("; ") });
  if (fields.length > limits.headFields || bytes > limits.headBytes)
    throw new TooLarge("head", `A head may have up to ${limits.headFields} fields and ${limits.headBytes} bytes.`);
  return fields;
}

/** Returns `:authority`, or Host in its place. If both are present, they must agree. */
function authorityOf(authority: string | undefined, fields: readonly Field[]): string {
  const hosts = fields.filter((field) => field.key === "host").map((field) => field.value);
  const named = authority ?? hosts[0] ?? "";
  if (hosts.some((host) => host.toLowerCase() !== named.toLowerCase()))
    throw new Malformed("Host and :authority must agree.");
  return named;
}
