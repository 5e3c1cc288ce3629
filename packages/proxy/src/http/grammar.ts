/** The smallest parts of HTTP: tokens, field names, hosts (RFC 9110 5.1, 5.6; RFC 9112 3.2). */

/** A message that is not HTTP as RFC 9112 defines it: 400 for a client's, 502 for an app's. */
export class Malformed extends Error {
  override name = "Malformed";
}

/** Well-formed as far as it was read, but over a limit: 431, 414 or 413 for a client's message, 502 for an app's. */
export class TooLarge extends Malformed {
  override name = "TooLarge";
  readonly part: "head" | "target" | "body";

  constructor(part: "head" | "target" | "body", message: string) {
    super(message);
    this.part = part;
  }
}

const TOKEN = new Uint8Array(256);
for (const char of "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
  TOKEN[char.charCodeAt(0)] = 1;

/** Returns whether `text` is a token, such as a method or a field name. */
export function isToken(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (TOKEN[text.charCodeAt(at)] !== 1) return false;
  return text.length > 0;
}

/** Common names, in both spellings: looking one up is cheaper than checking it and converting it to lower case. */
const COMMON = new Map(
  `Accept Accept-Encoding Accept-Language Accept-Ranges Access-Control-Allow-Origin Age Authorization Cache-Control
  Connection Content-Disposition Content-Encoding Content-Length Content-Security-Policy Content-Type Cookie Date
  ETag Expires Forwarded Host If-Modified-Since If-None-Match Keep-Alive Last-Modified Location Origin Pragma
  Referer Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Server Set-Cookie Strict-Transport-Security TE
  Transfer-Encoding Upgrade Upgrade-Insecure-Requests User-Agent Vary Via X-Content-Type-Options X-Forwarded-For
  X-Forwarded-Host X-Forwarded-Proto X-Frame-Options X-Powered-By X-Request-Id`
    .split(/\s+/)
    .flatMap((name) => [name, name.toLowerCase()].map((spelling) => [spelling, name.toLowerCase()] as const)),
);

/** Returns the name in lower case; undefined if it is not a valid name. */
export function fieldKey(name: string): string | undefined {
  return COMMON.get(name) ?? (isToken(name) ? name.toLowerCase() : undefined);
}

/** Returns `text` from `from` to `to`, without spaces and tabs at its ends. */
export function trimmed(text: string, from: number, to: number): string {
  let [begin, end] = [from, to];
  while (begin < end && isBlank(text.charCodeAt(begin))) begin += 1;
  while (end > begin && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(begin, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** The lists that occur in nearly every message. */
const SINGLE: ReadonlyMap<string, readonly string[]> = new Map(
  ["keep-alive", "close", "Upgrade", "upgrade"].map((word) => [word, [word.toLowerCase()]]),
);

/** Returns the parts of a list, such as `a, b,c`, in lower case. */
export function listed(value: string): readonly string[] {
  return (
    SINGLE.get(value) ??
    value
      .toLowerCase()
      .split(",")
      .map((part) => trimmed(part, 0, part.length))
      .filter((part) => part !== "")
  );
}

/** DNS names, also with `_`, which people use; IPv4; IPv6 in brackets. No user, no percent signs. */
const AUTHORITY = /^([a-z0-9_-][a-z0-9._-]{0,252}|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?$/i;

interface Authority {
  readonly host: string;
  readonly port: number | undefined;
}

/** The authority that was split last: the next request is usually for the same one. */
let split: { authority: string; parts: Authority | undefined } = { authority: "", parts: undefined };

/** Returns host and port of `authority`; undefined if it is not a valid one. */
export function splitAuthority(authority: string): Authority | undefined {
  if (authority !== split.authority) split = { authority, parts: partsOf(authority) };
  return split.parts;
}

function partsOf(authority: string): Authority | undefined {
  const match = AUTHORITY.exec(authority);
  if (match === null) return undefined;
  const port = match[2] === undefined ? undefined : Number(match[2]);
  if (port !== undefined && port > 65_535) return undefined;
  return { host: (match[1] ?? "").toLowerCase(), port };
}
