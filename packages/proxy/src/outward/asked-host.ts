/** Whom a machine's HTTP request is for. Pure. */

/** What a connection begins with. */
type HostReading =
  /** The head has not come to its end. */
  | { kind: "more" }
  /** In lower case, without a port. */
  | { kind: "host"; name: string }
  /** It is not a request of HTTP/1 with one host. */
  | { kind: "bad" };

/** As much as the proxy reads of a request's head. */
const MAX_HEAD_BYTES = 16 * 1024;
/** A whole URL, or the address of a tunnel, would be another host than the one in the field, and the one that counts. */
const REQUEST_LINE = /^[A-Z]{1,32} [/*][^\s]{0,8191} HTTP\/1\.[01]$/;
const FIELD_NAME = /^[!-9;-~]{1,256}:/;
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
  const head = bytes.toString("latin1", 0, end);
  // A line's end by itself could be one to someone else. First, as it makes patterns slow, too.
  if (/\r(?!\n)|(?<!\r)\n/.test(head)) return { kind: "bad" };
  const [request = "", ...fields] = head.split("\r\n");
  // A line that continues another one, or a name before a space, could be a second host.
  if (!REQUEST_LINE.test(request) || fields.some((line) => !FIELD_NAME.test(line))) return { kind: "bad" };
  const hosts = fields.filter((line) => line.slice(0, 5).toLowerCase() === "host:").map((line) => line.slice(5).trim());
  if (hosts.length !== 1) return { kind: "bad" };
  const name = HOST.exec(hosts[0] ?? "")?.[1];
  return name === undefined ? { kind: "bad" } : { kind: "host", name: name.toLowerCase() };
}
