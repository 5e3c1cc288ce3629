/** One GET over HTTP, bounded in time, its faults sorted into those worth a second try and others. */
import { Agent as HttpAgent, type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { getCACertificates } from "node:tls";
import { RegistryFault } from "./fault.ts";
import type { Patience } from "./patience.ts";

/** Open connections and how long to wait on them. */
export interface Transport {
  patience: Patience;
  /** The agent for an address. */
  agentFor(url: URL): HttpAgent | HttpsAgent;
}

const KEEP = { keepAlive: true, timeout: 30_000 };

/**
 * Connections that are used again. Certificates are checked against Node's list and the host's own; not at all
 * on hosts for which `trusted` says so. HTTPS_PROXY, HTTP_PROXY and NO_PROXY count, but not for those hosts.
 */
export function openTransport(patience: Patience, trusted: (host: string) => boolean): Transport {
  const direct = { http: new HttpAgent(KEEP), https: new HttpsAgent({ ...KEEP, rejectUnauthorized: false }) };
  let outside: typeof direct | undefined;
  // Hundreds of certificates are read: only when there is somebody to show one.
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

/** The head of the reply; its body has to be read or destroyed. Rejects with a RegistryFault, or as an abort does. */
export function getOnce(
  url: URL,
  headers: OutgoingHttpHeaders,
  transport: Transport,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { replyMs } = transport.patience;
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    // A compressed reply could not be resumed, and its digest is of the plain bytes.
    const all = { "user-agent": "hibernaut", "accept-encoding": "identity", ...headers };
    const request = send(url, { headers: all, agent: transport.agentFor(url), signal });
    const timer = setTimeout(() => {
      request.destroy(new RegistryFault("transient", `${url.host} did not answer within ${replyMs / 1000} s`));
    }, replyMs);
    request.once("response", (response) => {
      clearTimeout(timer);
      // Whoever reads the body hears of errors there; nobody else has to.
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

/** The bytes of a reply. Throws a transient RegistryFault when they stop coming, or come too slowly. */
export async function* bodyOf(
  response: IncomingMessage,
  { stallMs, stallBytes }: Patience,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let fresh = 0;
  const timer = setInterval(() => {
    if (fresh < stallBytes)
      response.destroy(new RegistryFault("transient", `less than ${stallBytes} bytes came in ${stallMs / 1000} s`));
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

/** A small reply as text. Throws an `invalid` RegistryFault when it is larger than `maximum` bytes. */
export async function textOf(
  response: IncomingMessage,
  maximum: number,
  patience: Patience,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  // What is small is there at once, or the connection is dead.
  for await (const chunk of bodyOf(response, { ...patience, stallBytes: 1 }, signal)) {
    size += chunk.length;
    if (size > maximum) throw new RegistryFault("invalid", `a reply has more than ${maximum} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Faults of TLS and of addresses stay as they are however often one tries. */
const LASTING =
  /^(?:CERT_|ERR_TLS_|ERR_INVALID_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO|ERR_SSL_)/;

function connectionFault(error: Error, host: string, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  if (error instanceof RegistryFault) return error;
  const code = codeOf(error);
  const kind = LASTING.test(code) ? "unreachable" : "transient";
  return new RegistryFault(kind, reasonOf(error, code, host), { cause: error });
}

/** What people meet most, in their words; the rest in those of the system. */
function reasonOf(error: Error, code: string, host: string): string {
  const name = host.replace(/:\d+$/, "");
  if (code === "ECONNREFUSED") return `nothing listens at ${host}`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the name ${name} cannot be resolved (${code})`;
  return `${host}: ${error.message === "aborted" ? "the connection was cut" : error.message || code}`;
}

/** The code that Node or OpenSSL gave an error; empty for none. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "";
}
