/** The TLS of a TCP connection: finds out which app the client wants, and ends TLS if the app leaves that to the proxy. */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { TlsHandler } from "@hibernaut/domain/tcp-handlers";
import { ProxyRefusal } from "../contract.ts";
import type { Certificates } from "../http/certificates.ts";
import { ALERTS, alertRecord, readClientHello } from "./client-hello.ts";
import { type PortApps, tlsOwner } from "./ports.ts";
import { POSTGRES_ALPN, postgresError, readPostgresStart, UNWILLING, WILLING } from "./postgres.ts";
import { readStart } from "./read-start.ts";

/** A client is told this, in the words of its protocol, before it is cut off. */
export class TlsRefusal extends ProxyRefusal {
  readonly lastWords: Buffer | undefined;
  readonly serverName: string;

  constructor(code: string, message: string, more: { lastWords?: Buffer; serverName?: string | undefined }) {
    super(421, code, message);
    this.lastWords = more.lastWords;
    this.serverName = more.serverName ?? "";
  }
}

export interface TlsOptions {
  apps: PortApps;
  /** Returns the app that answers for the hostname. */
  appFor(hostname: string): string | undefined;
  certificates(): Promise<Pick<Certificates, "find">>;
  /** Aborts when the client has taken too long, or has left. */
  signal: AbortSignal;
}

/** A connection whose app is known. */
export interface Accepted {
  /** What the app's bytes are read from and written to. */
  client: Socket;
  app: string;
  /** The hostname that the client named; empty if none. */
  serverName: string;
}

/** Rejects with a {@link TlsRefusal}, with 499 if the client leaves, or with the signal's reason. */
export async function acceptTls(raw: Socket, options: TlsOptions): Promise<Accepted> {
  const { apps, appFor, signal } = options;
  const start = [...apps.values()].includes("pg_tls") ? await askedByPostgres(raw, signal) : "tls";
  const [sole] = apps.keys();
  // Not even PostgreSQL's own clients encrypt it, up to version 16. It names no hostname.
  if (start === "cancel" && apps.size === 1 && sole !== undefined) return { client: raw, app: sole, serverName: "" };
  if (start === "plain" || start === "cancel") throw tlsRequired();
  const hello = await readStart(raw, readClientHello, signal);
  if (hello.kind === "bad")
    throw new TlsRefusal("tls_invalid", "The connection does not begin with a valid TLS handshake.", {
      lastWords: alertRecord(hello.alert),
    });
  const { serverName } = hello;
  const app = tlsOwner(apps, serverName, appFor);
  const handler = app === undefined ? undefined : apps.get(app);
  if (app === undefined || handler === undefined || (start === "postgres" && handler !== "pg_tls"))
    throw nameRefusal(serverName);
  if (handler === "tls_passthrough") return { client: raw, app, serverName: serverName ?? "" };
  return { client: await terminated(raw, serverName, handler, options), app, serverName: serverName ?? "" };
}

/** Answers what a PostgreSQL client asks for before TLS. Its connection continues with TLS unless it does without. */
async function askedByPostgres(raw: Socket, signal: AbortSignal): Promise<"tls" | "postgres" | "cancel" | "plain"> {
  for (let asked = false; ; asked = true) {
    const reading = await readStart(raw, readPostgresStart, signal);
    if (reading.kind === "tls") return "tls";
    if (reading.kind === "plain" || reading.kind === "cancel") return reading.kind;
    // What came with the request was not encrypted: another one than the client may have sent it.
    if (raw.readableLength > 0) throw new TlsRefusal("tls_invalid", "The client sent something before TLS.", {});
    if (reading.kind === "ssl_request") {
      raw.write(WILLING);
      return "postgres";
    }
    if (asked) throw new TlsRefusal("tls_invalid", "The client asked for GSSAPI encryption twice.", {});
    raw.write(UNWILLING);
  }
}

function tlsRequired(): TlsRefusal {
  const message = "This port requires TLS. Connect with sslmode=require.";
  // The state of PostgreSQL for a client that its server does not let in.
  return new TlsRefusal("tls_required", message, { lastWords: postgresError("28000", message) });
}

function nameRefusal(serverName: string | undefined): TlsRefusal {
  if (serverName === undefined)
    return new TlsRefusal("tls_name_missing", "The client names no hostname, which several apps need.", {
      lastWords: alertRecord(ALERTS.missingExtension),
    });
  const lastWords = alertRecord(ALERTS.unrecognizedName);
  return new TlsRefusal("unknown_host", "No app with this port has the hostname.", { serverName, lastWords });
}

async function terminated(
  raw: Socket,
  serverName: string | undefined,
  handler: TlsHandler,
  { certificates, signal }: TlsOptions,
): Promise<TLSSocket> {
  const secureContext = (await certificates()).find(serverName ?? "");
  if (secureContext === undefined)
    throw new TlsRefusal("no_certificate", "There is no certificate for the hostname.", {
      serverName,
      lastWords: alertRecord(serverName === undefined ? ALERTS.missingExtension : ALERTS.unrecognizedName),
    });
  signal.throwIfAborted();
  const socket = new TLSSocket(raw, {
    isServer: true,
    secureContext,
    ...(handler === "pg_tls" && { ALPNProtocols: [POSTGRES_ALPN] }),
  });
  return new Promise((resolve, reject) => {
    const end = () => {
      socket.off("secure", secured).off("_tlsError", failed).off("end", gone).off("close", gone);
      signal.removeEventListener("abort", late);
    };
    const giveUp = (error: Error) => {
      end();
      socket.destroy();
      reject(error);
    };
    const secured = () => {
      end();
      resolve(socket);
    };
    // OpenSSL has told the client.
    const failed = ({ message }: Error) =>
      giveUp(new TlsRefusal("tls_failed", `The TLS handshake failed: ${message}`, { serverName }));
    const gone = () => giveUp(new ProxyRefusal(499, "client_gone", "The client left."));
    const late = () => giveUp(signal.reason as Error);
    // What is wrong later shows in its close.
    socket.on("error", () => {});
    socket.once("secure", secured).once("_tlsError", failed).once("end", gone).once("close", gone);
    signal.addEventListener("abort", late, { once: true });
  });
}
