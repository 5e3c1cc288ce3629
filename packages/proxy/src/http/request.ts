/** The head of a request: its request line, and what its fields mean for this connection (RFC 9112 3, 6.3). */
import { type Field, ProxyRefusal } from "../contract.ts";
import { CHUNKED, control, type FieldMemory, type Framing, NO_BODY, parseFields } from "./fields.ts";
import { isToken, Malformed, splitAuthority } from "./grammar.ts";
import type { Limits } from "./limits.ts";

/** A request as it was understood. HTTP/2 requests get the same shape. */
export interface RequestMessage {
  method: string;
  /** Origin form, or `*`. */
  target: string;
  /** What the client calls the app, with a port if it named one: the app's `Host`. */
  authority: string;
  host: string;
  port: number | undefined;
  httpVersion: "1.0" | "1.1" | "2.0";
  fields: readonly Field[];
  framing: Framing;
  /** The options of `Connection`, which name more fields that end here. */
  connection: readonly string[];
  /** Whether the connection may take another request. */
  keepAlive: boolean;
  /** The protocol that the client wants to switch to. */
  upgrade: string | undefined;
  /** The key that the proxy made for a WebSocket over HTTP/2, whose clients send none. */
  webSocketKey?: string;
}

const ORIGIN_FORM = /^\/[\x21\x22\x24-\x7e]*$/;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * Parses the lines of a head. Throws {@link Malformed} or a {@link ProxyRefusal}.
 *
 * @param before what the connection remembers of the last head
 */
export function parseRequest(text: string, limits: Pick<Limits, "headFields">, before?: FieldMemory): RequestMessage {
  const lineEnd = text.indexOf("\r\n");
  const { method, rawTarget, version } = requestLine(text.slice(0, lineEnd));
  const fields = parseFields(text, lineEnd + 2, limits.headFields, before);
  const { length, chunked, connection, upgrade } = control(fields, version);
  if (method === "CONNECT") throw new ProxyRefusal(405, "method_not_allowed", "CONNECT is not supported.");
  const { target, authority } = targetOf(method, rawTarget, hostField(fields));
  const split = splitAuthority(authority);
  if (split === undefined) throw new Malformed("Host must be a name or an address, with or without a port.");
  const framing: Framing = chunked ? CHUNKED : length ? { kind: "length", length } : NO_BODY;
  return {
    method,
    target,
    authority,
    host: split.host,
    port: split.port,
    httpVersion: version,
    fields,
    // A stated length of 0 is stated to the app too.
    framing: length === 0 ? { kind: "length", length } : framing,
    connection,
    keepAlive: version === "1.1" ? !connection.includes("close") : connection.includes("keep-alive"),
    upgrade: mayUpgrade(version, framing, connection, upgrade) ? upgrade : undefined,
  };
}

/** Parses `GET /path HTTP/1.1`: three words, with one space between them. */
function requestLine(line: string): { method: string; rawTarget: string; version: "1.0" | "1.1" } {
  const [first, last] = [line.indexOf(" "), line.lastIndexOf(" ")];
  const method = line.slice(0, Math.max(first, 0));
  const rawTarget = line.slice(first + 1, last);
  const protocol = line.slice(last + 1);
  if (!isToken(method) || first === last || rawTarget === "" || rawTarget.includes(" "))
    throw new Malformed("A request must begin with a method, a target and a version, with one space between them.");
  if (protocol === "HTTP/1.1") return { method, rawTarget, version: "1.1" };
  if (protocol === "HTTP/1.0") return { method, rawTarget, version: "1.0" };
  if (/^HTTP\/\d\.\d$/.test(protocol))
    throw new ProxyRefusal(
      505,
      "version_not_supported",
      "Supported versions are HTTP/1.1, HTTP/1.0 and, over TLS, HTTP/2.",
    );
  throw new Malformed("A request line must end in a version such as HTTP/1.1.");
}

function hostField(fields: readonly Field[]): string {
  let host: string | undefined;
  for (const field of fields) {
    if (field.key !== "host") continue;
    if (host !== undefined) throw new Malformed("Host may occur only once.");
    host = field.value;
  }
  // HTTP/1.0 does not require it, but apps differ by nothing else.
  if (host === undefined) throw new Malformed("A request must have a Host.");
  if (splitAuthority(host) === undefined)
    throw new Malformed("Host must be a name or an address, with or without a port.");
  return host;
}

/** Whether the head of a request is all of it. */
export function endsWithHead({ framing }: RequestMessage): boolean {
  return framing.kind === "none" || (framing.kind === "length" && framing.length === 0);
}

/** Returns whether `target` is one for an app: a path with or without a query, or `*`. */
export function isTarget(method: string, target: string): boolean {
  return ORIGIN_FORM.test(target) || (target === "*" && method === "OPTIONS");
}

/** Returns the target in origin form, and the authority. A target in absolute form overrides Host (RFC 9112 3.2.2). */
function targetOf(method: string, raw: string, host: string): { target: string; authority: string } {
  if (isTarget(method, raw)) return { target: raw, authority: host };
  const absolute = ABSOLUTE_FORM.exec(raw);
  if (absolute === null) throw new Malformed("A request target must begin with a slash and contain only ASCII.");
  const rest = absolute[2] ?? "";
  const target = rest.startsWith("/") ? rest : `/${rest}`;
  if (!ORIGIN_FORM.test(target))
    throw new Malformed("A request target must contain only printable ASCII, and no fragment.");
  return { target, authority: absolute[1] ?? "" };
}

/**
 * Returns whether to pass an upgrade on. With a body, it is forwarded as an ordinary request, as RFC 9110 7.8 allows. So
 * is h2c: after it, requests would reach the app that the proxy has not checked.
 */
function mayUpgrade(version: string, framing: Framing, connection: readonly string[], upgrade: string | undefined) {
  if (upgrade === undefined || version !== "1.1" || framing.kind !== "none") return false;
  return connection.includes("upgrade") && !/(^|[\s,])h2c?\b/i.test(upgrade);
}
