/** The first message of a TLS connection, which names the hostname that the client wants (RFC 8446, RFC 6066). Pure. */

/** What a connection begins with. */
export type HelloReading =
  /** The message has not come to its end. */
  | { kind: "more" }
  /**
   * `serverName` is in lower case. Undefined if the client names none. `protocols` are those that it offers to speak over
   * TLS (RFC 7301); empty if it says nothing about them.
   */
  | { kind: "hello"; serverName: string | undefined; protocols: readonly string[] }
  /** It is not TLS, or cannot be understood. The alert says so to a client that speaks TLS. */
  | { kind: "bad"; alert: number };

/** Alerts of TLS (RFC 8446 B.2). */
export const ALERTS = {
  unexpectedMessage: 10,
  recordOverflow: 22,
  illegalParameter: 47,
  decodeError: 50,
  protocolVersion: 70,
  missingExtension: 109,
  unrecognizedName: 112,
} as const;

/** As much as HAProxy reads. Clients send up to 2 KB, with keys that withstand quantum computers. */
export const MAX_HELLO_BYTES = 16 * 1024;
/** What one record may carry. */
const MAX_RECORD_BYTES = 16 * 1024;
const RECORD_HEAD_BYTES = 5;
/** Clients send one or two. Each costs a look whenever more bytes come. */
const MAX_RECORDS = 64;
const HANDSHAKE_HEAD_BYTES = 4;
const RECORD = { alert: 21, handshake: 22 } as const;
const CLIENT_HELLO = 1;
/** Extensions. */
const SERVER_NAME = 0;
const PROTOCOLS = 16;
const HOST_NAME = 0;
const RANDOM_BYTES = 32;
/** What a hostname may contain: no address has only that, as a name's last label is not a number. */
const NAME =
  /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?=[a-z0-9_-]*[a-z_-])[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_NAME_BYTES = 253;

const MORE: HelloReading = { kind: "more" };

/** A reader that went past the end, or found what must not be there. */
class Malformed extends Error {
  readonly alert: number;

  constructor(alert: number = ALERTS.decodeError) {
    super("malformed");
    this.alert = alert;
  }
}

/** Reads the first message of a connection. It may be in several records, and each may come in pieces. */
export function readClientHello(bytes: Buffer): HelloReading {
  try {
    const message = handshakeOf(bytes);
    return message === undefined ? MORE : { kind: "hello", ...offerOf(message) };
  } catch (error) {
    if (error instanceof Malformed) return { kind: "bad", alert: error.alert };
    throw error;
  }
}

/** Returns the body of the message. Undefined while it has not come to its end. */
function handshakeOf(bytes: Buffer): Buffer | undefined {
  const pieces: Buffer[] = [];
  let [at, size] = [0, 0];
  for (;;) {
    const piece = recordAt(bytes, at);
    if (piece !== undefined) {
      if (pieces.length === MAX_RECORDS) throw new Malformed(ALERTS.illegalParameter);
      pieces.push(piece);
      size += piece.length;
      at += RECORD_HEAD_BYTES + piece.length;
    }
    const length = lengthOf(pieces, size);
    if (length !== undefined && size >= length) return Buffer.concat(pieces).subarray(HANDSHAKE_HEAD_BYTES, length);
    if (piece === undefined) {
      if (bytes.length >= MAX_HELLO_BYTES) throw new Malformed(ALERTS.illegalParameter);
      return undefined;
    }
  }
}

/** Returns what the record at `at` carries. Undefined while it has not come to its end. */
function recordAt(bytes: Buffer, at: number): Buffer | undefined {
  const [type, major] = [bytes[at], bytes[at + 1]];
  if (type !== undefined && type !== RECORD.handshake)
    throw new Malformed(at === 0 && type !== RECORD.alert ? ALERTS.protocolVersion : ALERTS.unexpectedMessage);
  if (major !== undefined && major !== 3) throw new Malformed(ALERTS.protocolVersion);
  if (bytes.length < at + RECORD_HEAD_BYTES) return undefined;
  const length = bytes.readUInt16BE(at + 3);
  if (length > MAX_RECORD_BYTES) throw new Malformed(ALERTS.recordOverflow);
  if (length === 0) throw new Malformed(ALERTS.unexpectedMessage);
  const end = at + RECORD_HEAD_BYTES + length;
  return bytes.length < end ? undefined : bytes.subarray(at + RECORD_HEAD_BYTES, end);
}

/** Returns the length of the message with its head. Undefined while that has not come. */
function lengthOf(pieces: readonly Buffer[], size: number): number | undefined {
  if (size === 0) return undefined;
  const head = pieces[0] !== undefined && pieces[0].length >= HANDSHAKE_HEAD_BYTES ? pieces[0] : Buffer.concat(pieces);
  if (head[0] !== CLIENT_HELLO) throw new Malformed(ALERTS.unexpectedMessage);
  if (size < HANDSHAKE_HEAD_BYTES) return undefined;
  const length = HANDSHAKE_HEAD_BYTES + head.readUIntBE(1, 3);
  if (length > MAX_HELLO_BYTES) throw new Malformed(ALERTS.illegalParameter);
  return length;
}

/** Reads what is prefixed with its length. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new Malformed();
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  number(bytes: 1 | 2): number {
    return this.take(bytes).readUIntBE(0, bytes);
  }

  /** @param bytes of its length */
  vector(bytes: 1 | 2): Buffer {
    return this.take(this.number(bytes));
  }
}

/** What the message says about whom the client wants to talk to, and how. */
function offerOf(message: Buffer): { serverName: string | undefined; protocols: readonly string[] } {
  const hello = new Reader(message);
  const version = hello.number(2);
  if (version >> 8 !== 3) throw new Malformed(ALERTS.protocolVersion);
  hello.take(RANDOM_BYTES);
  hello.vector(1); // the session
  const ciphers = hello.vector(2);
  const compressions = hello.vector(1);
  if (ciphers.length === 0 || ciphers.length % 2 === 1 || compressions.length === 0) throw new Malformed();
  if (hello.ended) return { serverName: undefined, protocols: [] };
  const extensions = new Reader(hello.vector(2));
  if (!hello.ended) throw new Malformed();
  const seen = new Set<number>();
  let serverName: string | undefined;
  let protocols: readonly string[] = [];
  while (!extensions.ended) {
    const type = extensions.number(2);
    const data = extensions.vector(2);
    if (seen.has(type)) throw new Malformed(ALERTS.illegalParameter);
    seen.add(type);
    if (type === SERVER_NAME) serverName = nameIn(data);
    if (type === PROTOCOLS) protocols = protocolsIn(data);
  }
  return { serverName, protocols };
}

/** The list has one name: no other kind was ever defined, and RFC 6066 forbids two of one kind. */
function nameIn(data: Buffer): string {
  const list = new Reader(data);
  const entries = new Reader(list.vector(2));
  if (!list.ended) throw new Malformed();
  const type = entries.number(1);
  const name = entries.vector(2);
  if (type !== HOST_NAME || !entries.ended || name.length === 0) throw new Malformed();
  const text = name.toString("latin1").toLowerCase().replace(/\.$/, "");
  if (text.length > MAX_NAME_BYTES || !NAME.test(text)) throw new Malformed(ALERTS.unrecognizedName);
  return text;
}

function protocolsIn(data: Buffer): string[] {
  const list = new Reader(data);
  const entries = new Reader(list.vector(2));
  const protocols: string[] = [];
  while (!entries.ended) protocols.push(entries.vector(1).toString("latin1"));
  if (!list.ended || protocols.length === 0 || protocols.includes("")) throw new Malformed();
  return protocols;
}

/** Returns a record that ends a handshake before there are keys. */
export function alertRecord(alert: number): Buffer {
  const fatal = 2;
  return Buffer.from([RECORD.alert, 3, 3, 0, 2, fatal, alert]);
}
