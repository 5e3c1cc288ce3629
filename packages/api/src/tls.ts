/** TLS of the API: reads the certificate, and adopts a new one without a restart. */
import { readFileSync, statSync } from "node:fs";
import { Server as TlsServer } from "node:https";
import { createSecureContext } from "node:tls";
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { Api, ApiTls } from "./deps.ts";

/** How often the files are looked at, in milliseconds. A renewal is not urgent, and a look is cheap. */
const LOOK_MS = 2000;

/** Returns the files' paths from the settings; undefined without TLS. Throws `invalid_argument` if one is missing. */
export function apiTlsOf(settings: {
  apiTlsCert?: string | undefined;
  apiTlsKey?: string | undefined;
  apiTlsClientCa?: string | undefined;
}): ApiTls | undefined {
  const { apiTlsCert: cert, apiTlsKey: key, apiTlsClientCa: clientCa } = settings;
  if (cert !== undefined && key !== undefined) return { cert, key, clientCa };
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined;
  const missing = cert === undefined ? "HIBERNAUT_API_TLS_CERT" : "HIBERNAUT_API_TLS_KEY";
  throw new HibernautError(
    "invalid_argument",
    `${missing} is missing: TLS for the API needs a certificate and its key.`,
  );
}

/** Returns what the HTTP server needs for TLS. Throws `invalid_argument` if a file cannot be used. */
export function serverTls(files: ApiTls) {
  const material = readTls(files);
  return {
    ...material,
    minVersion: "TLSv1.2" as const,
    // Someone without a certificate is disconnected before any byte of HTTP is read.
    ...(files.clientCa !== undefined && { requestCert: true, rejectUnauthorized: true }),
  };
}

/** Adopts the files when they change; one that is broken, or half written, leaves the old ones in place. */
export function followTls(api: Api, files: ApiTls, onFault: (error: unknown) => void, lookMs = LOOK_MS): void {
  const server: unknown = api.server;
  if (!(server instanceof TlsServer)) return;
  let known = stampOf(files);
  const timer = setInterval(() => {
    const stamp = stampOf(files);
    if (stamp === known) return;
    known = stamp;
    try {
      server.setSecureContext(readTls(files));
    } catch (error) {
      onFault(error);
    }
  }, lookMs);
  timer.unref();
  api.addHook("onClose", async () => clearInterval(timer));
}

/** Hands a connection that needs no TLS to the server: one from inside a machine. */
export function acceptPlain(api: Api, connection: object): void {
  const server: unknown = api.server;
  // After its handshake, a TLS server treats a connection as a plain one treats any.
  api.server.emit(server instanceof TlsServer ? "secureConnection" : "connection", connection);
}

function readTls({ cert, key, clientCa }: ApiTls) {
  const material = {
    cert: read("HIBERNAUT_API_TLS_CERT", cert),
    key: read("HIBERNAUT_API_TLS_KEY", key),
    ...(clientCa !== undefined && { ca: read("HIBERNAUT_API_TLS_CLIENT_CA", clientCa) }),
  };
  try {
    createSecureContext(material);
  } catch (error) {
    const message = `The API's certificate ${cert} cannot be used with the key ${key}: ${messageOf(error)}. Both must be PEM and belong together.`;
    throw new HibernautError("invalid_argument", message, { cert, key }, { cause: error });
  }
  return material;
}

function read(setting: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const message = `${setting} names ${file}, which cannot be read: ${messageOf(error)}. Correct the path, or let the platform's user read it.`;
    throw new HibernautError("invalid_argument", message, { setting, file }, { cause: error });
  }
}

function stampOf({ cert, key, clientCa }: ApiTls): string {
  const files = clientCa === undefined ? [cert, key] : [cert, key, clientCa];
  return files
    .map((file) => {
      const found = statSync(file, { throwIfNoEntry: false });
      return `${found?.ino} ${found?.mtimeMs} ${found?.size}`;
    })
    .join(" ");
}
