/** Sends one GET request with a time limit, and sorts failures into transient ones and others. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { getCACertificates } from "node:tls";
import { RegistryFault } from "./fault.ts";
import type { Patience } from "./patience.ts";

/** Open connections, and how long to wait for replies. */
export interface Transport {
  patience: Patience;
  /** Returns the agent for an address. */
  agentFor(url: URL): HttpAgent | HttpsAgent;
}

const KEEP = { keepAlive: true, timeout: 30_000 };

/**
 * Opens a pool of connections. Certificates are checked against Node's list and the host's, but not for hosts for which
 * `trusted` returns true. HTTPS_PROXY, HTTP_PROXY and NO_PROXY apply to all other hosts.
 */
export function openTransport(patience: Patience, trusted: (host: string) => boolean): Transport {
  const direct = { http: new HttpAgent(KEEP), https: new HttpsAgent({ ...KEEP, rejectUnauthorized: false }) };
  let outside: typeof direct | undefined;
  // Reads hundreds of certificates, so this is done only when a host needs them.
  const openOutside = () => ({
    http: new HttpAgent({ ...KEEP, proxyEnv: process.env }),
    https: new HttpsAgent({
      ...KEEP,
      proxyEnv: process.env,
      ca: [...getCACertificates("default"), ...getCACertificates("system")],
    }),
  });
  return {
    patience,
    agentFor(url) {
      outside ??= trusted(url.host) ? undefined : openOutside();
      const agents = trusted(url.host) || outside === undefined ? direct : outside;
      return url.protocol === "https:" ? agents.https : agents.http;
    },
  };
}

/**
 * Returns a reply, whose body the caller has to read or destroy. Rejects with a RegistryFault, or with the signal's reason
 * when it is aborted.
 */
export function getOnce(
  url: URL,
  headers: OutgoingHttpHeaders,
  transport: Transport,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { replyMs } = transport.patience;
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    // A compressed reply could not be resumed, and digests are of the uncompressed bytes.
    const all = { "user-agent": "hibernaut", "accept-encoding": "identity", ...headers };
    const request = send(url, { headers: all, agent: transport.agentFor(url), signal });
    const timer = setTimeout(() => {
      request.destroy(new RegistryFault("transient", `${url.host} did not answer within ${replyMs / 1000} s`));
    }, replyMs);
    request.once("response", (response) => {
      clearTimeout(timer);
      // The reader of the body gets its errors; without a reader they must not be thrown.
      response.on("error", () => {});
      resolve(response);
    });
    request.on("error", (error) => {
      clearTimeout(timer);
      reject(connectionFault(error, url.host, signal));
    });
    request.end();
  });
}

/** Yields the bytes of a reply. Throws a transient RegistryFault when they stop coming or come too slowly. */
export async function* bodyOf(
  response: IncomingMessage,
  { stallMs, stallBytes }: Patience,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let fresh = 0;
  const timer = setInterval(() => {
    if (fresh < stallBytes)
      response.destroy(new RegistryFault("transient", `fewer than ${stallBytes} bytes arrived in ${stallMs / 1000} s`));
    fresh = 0;
  }, stallMs);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      fresh += chunk.length;
      yield chunk;
    }
  } catch (error) {
    throw connectionFault(error as Error, "the registry", signal);
  } finally {
    clearInterval(timer);
    response.destroy();
  }
}

/** Reads a small reply as text. Rejects with an `invalid` RegistryFault when it is larger than `maximum` bytes. */
export async function textOf(
  response: IncomingMessage,
  maximum: number,
  patience: Patience,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  // A small reply arrives at once, or the connection is dead.
  for await (const chunk of bodyOf(response, { ...patience, stallBytes: 1 }, signal)) {
    size += chunk.length;
    if (size > maximum) throw new RegistryFault("invalid", `a reply has more than ${maximum} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Faults of TLS and of addresses do not go away with another attempt. */
const LASTING =
  /^(?:CERT_|ERR_TLS_|ERR_INVALID_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO|ERR_SSL_)/;

function connectionFault(error: Error, host: string, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  if (error instanceof RegistryFault) return error;
  const code = codeOf(error);
  const kind = LASTING.test(code) ? "unreachable" : "transient";
  return new RegistryFault(kind, reasonOf(error, code, host), { cause: error });
}

/** Explains the most frequent failures in plain words, and the others in those of the system. */
function reasonOf(error: Error, code: string, host: string): string {
  const name = host.replace(/:\d+$/, "");
  if (code === "ECONNREFUSED") return `nothing listens at ${host}`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the name ${name} cannot be resolved (${code})`;
  return `${host}: ${error.message === "aborted" ? "the connection was closed" : error.message || code}`;
}

/** Returns the code that Node or OpenSSL gave an error. Empty when there is none. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "";
}
