/** What a PostgreSQL client sends before TLS: it asks for it first. Pure. */

/** What a connection begins with. */
type PostgresReading =
  | { kind: "more" }
  /** The client asks for TLS, or for GSSAPI encryption, in `length` bytes. */
  | { kind: "ssl_request" | "gss_request"; length: number }
  /** The client begins TLS at once, as libpq does from version 17 on with `sslnegotiation=direct`. */
  | { kind: "tls" }
  /** The client cancels what another connection does. */
  | { kind: "cancel" }
  /** The client does without TLS. */
  | { kind: "plain" };

const REQUEST_BYTES = 8;
const CANCEL_BYTES = 16;
const CODES = { cancel: 80_877_102, ssl: 80_877_103, gss: 80_877_104 } as const;
const TLS_HANDSHAKE = 22;

/** What a server that is asked for it answers: it will, or it will not. */
export const WILLING = Buffer.from("S");
export const UNWILLING = Buffer.from("N");

/** PostgreSQL's name in ALPN, which clients that begin TLS at once insist on. */
export const POSTGRES_ALPN = "postgresql";

/** Reads the first message of a connection. */
export function readPostgresStart(bytes: Buffer): PostgresReading {
  if (bytes[0] === TLS_HANDSHAKE) return { kind: "tls" };
  if (bytes.length < REQUEST_BYTES) return { kind: "more" };
  const [length, code] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)];
  if (length === CANCEL_BYTES && code === CODES.cancel) return { kind: "cancel" };
  if (length !== REQUEST_BYTES) return { kind: "plain" };
  if (code === CODES.ssl) return { kind: "ssl_request", length };
  return code === CODES.gss ? { kind: "gss_request", length } : { kind: "plain" };
}

/** Returns an error as PostgreSQL sends it, which its clients show to their users. */
export function postgresError(sqlState: string, message: string): Buffer {
  const fields = Object.entries({ S: "FATAL", V: "FATAL", C: sqlState, M: message });
  const body = Buffer.from(`${fields.map(([key, value]) => `${key}${value}\0`).join("")}\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeUInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}
