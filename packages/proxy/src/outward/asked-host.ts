/** Whom a machine's HTTP request is for. Pure. */

/** What a connection begins with. */
export type HostReading =
  /** The head has not come to its end. */
  | { kind: "more" }
  /** In lower case, without a port. */
  | { kind: "host"; name: string }
  /** It is not a request of HTTP/1 with one host. */
  | { kind: "bad" };

/** As much as the proxy reads of a request's head. */
export const MAX_HEAD_BYTES = 16 * 1024;
const REQUEST_LINE = /^[A-Z]{1,32} [^\s]{1,8192} HTTP\/1\.[01]$/;
/** A name, and maybe a port. An address is not a name: what may be reached by its address does not come here. */
const HOST = /^([a-z0-9_.-]{1,253}?)\.?(?::[0-9]{1,5})?$/i;

/** Reads the head with which a connection begins. */
export function readHost(bytes: Buffer): HostReading {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) {
    // Bytes that no request has are refused before there are many of them.
    const isRequest = /^[A-Z]{0,32}( |$)/.test(bytes.toString("latin1", 0, 33));
    return bytes.length < MAX_HEAD_BYTES && isRequest ? { kind: "more" } : { kind: "bad" };
  }
  const [request = "", ...fields] = bytes.toString("latin1", 0, end).split("\r\n");
  if (!REQUEST_LINE.test(request)) return { kind: "bad" };
  const hosts = fields.flatMap((line) => /^host:[ \t]*(.*?)[ \t]*$/i.exec(line)?.[1] ?? []);
  // A line that continues another one, or a name before a space, could be a second host to someone else.
  if (hosts.length !== 1 || fields.some((line) => /^[ \t]|^[^:]*[ \t]:|[\r\n]/.test(line))) return { kind: "bad" };
  const name = HOST.exec(hosts[0] ?? "")?.[1];
  return name === undefined ? { kind: "bad" } : { kind: "host", name: name.toLowerCase() };
}
