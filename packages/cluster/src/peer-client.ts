/** HTTP requests to other hosts of the cluster, over kept connections. */
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { PeerService, Peers, View } from "./cluster.ts";
import type { Changed } from "./contract.ts";
import { KEYS, nameOf } from "./keys.ts";
import { connectTo, PeerAgent } from "./peer-agent.ts";

/** Methods of requests that change nothing, so that they may be sent again. */
const REPEATABLE = new Set(["GET", "HEAD"]);

export interface PeerRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** A stream can be sent only once. Its length, if it is known, is in the headers. */
  body?: Buffer | Readable | undefined;
  signal?: AbortSignal | undefined;
}

/** A connection that was upgraded to another protocol. */
export interface Upgraded {
  response: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

interface PeerClientOptions {
  peers: Peers;
  view: Pick<View, "host" | "subscribe">;
  service: PeerService;
  /** Opens a connection to a host. Default: TLS to what {@link Peers} say. */
  connect?(host: string): Socket;
}

export class PeerClient {
  readonly #connect: (host: string) => Socket;
  readonly #agents = new Map<string, PeerAgent>();
  /** What is open, by host. */
  readonly #open = new Map<string, Set<AbortController>>();
  readonly #unsubscribe: () => void;

  constructor({ peers, view, service, connect }: PeerClientOptions) {
    this.#connect = connect ?? ((host) => connectTo(peers.target(host, service)));
    this.#unsubscribe = view.subscribe(KEYS.hosts, (changes) => this.#abandon(changes));
  }

  /**
   * Resolves with the head of the reply. Rejects with `host_unreachable` when the host is away, does not answer or goes
   * away meanwhile, and with the signal's reason. When a kept connection turns out to be closed, what changes nothing is
   * sent once more. All else never is, because nobody knows whether the host has carried out the request.
   */
  async send(host: string, request: PeerRequest): Promise<IncomingMessage> {
    try {
      return await this.#exchange(host, request);
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
      return this.#exchange(host, request, { fresh: true });
    }
  }

  /** The same for a request to upgrade. Resolves with the reply alone when the host does not upgrade. */
  upgrade(host: string, request: Omit<PeerRequest, "body">): Promise<IncomingMessage | Upgraded> {
    return new Promise((resolve, reject) => {
      const { sent, abandoned, end } = this.#begin(host, request, { fresh: true });
      sent.once("upgrade", (response, socket, head) => {
        // From here on the request's signal does not end the connection any more.
        const abandon = () => socket.destroy();
        if (abandoned.aborted) abandon();
        abandoned.addEventListener("abort", abandon, { once: true });
        socket.once("close", end);
        resolve({ response, socket, head });
      });
      sent.once("response", (response) => {
        response.once("close", end);
        resolve(response);
      });
      sent.once("error", (error) => {
        end();
        reject(this.#refusal(host, request, error));
      });
      sent.end();
    });
  }

  close(): void {
    this.#unsubscribe();
    for (const open of this.#open.values()) for (const each of open) each.abort();
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #exchange(host: string, request: PeerRequest, { fresh = false } = {}): Promise<IncomingMessage> {
    const { body } = request;
    const isStream = body !== undefined && !Buffer.isBuffer(body);
    const isRepeatable = !isStream && REPEATABLE.has(request.method);
    return new Promise((resolve, reject) => {
      const { sent, end } = this.#begin(host, request, { fresh });
      sent.once("response", (response) => {
        response.once("close", () => {
          end();
          if (sent.writableFinished) return;
          // The answer came before the whole body was sent, and makes the rest of it pointless.
          if (isStream) body.unpipe(sent);
          sent.destroy();
        });
        resolve(response);
      });
      sent.once("error", (error) => {
        end();
        if (isStream) body.unpipe(sent);
        const isStale = isRepeatable && sent.reusedSocket && (error as NodeJS.ErrnoException).code === "ECONNRESET";
        reject(isStale ? new StaleConnection() : this.#refusal(host, request, error));
      });
      if (!isStream) return void sent.end(body);
      body.pipe(sent);
      body.once("error", (error) => sent.destroy(error));
    });
  }

  #begin(
    host: string,
    request: PeerRequest,
    { fresh }: { fresh: boolean },
  ): { sent: ClientRequest; abandoned: AbortSignal; end(): void } {
    const agent = this.#agents.get(host) ?? new PeerAgent(() => this.#connect(host));
    this.#agents.set(host, agent);
    const abandoned = new AbortController();
    const sent = httpRequest({
      method: request.method,
      path: request.path,
      // HTTP/1.1 refuses a request without it. A client's own is sent on as it is.
      headers: { host, ...framed(request) },
      setHost: false,
      // Without an agent, the connection is closed after the reply.
      ...(fresh ? { createConnection: () => agent.createConnection() } : { agent }),
      signal: request.signal === undefined ? abandoned.signal : AbortSignal.any([abandoned.signal, request.signal]),
    });
    const open = this.#open.get(host) ?? new Set();
    this.#open.set(host, open.add(abandoned));
    return { sent, abandoned: abandoned.signal, end: () => open.delete(abandoned) };
  }

  /** A host that went away may keep its connections open, and never answer. */
  #abandon(changes: readonly Changed[]): void {
    for (const { key, value } of changes) {
      if (value !== null) continue;
      const host = nameOf(key);
      for (const open of this.#open.get(host) ?? []) open.abort();
      this.#agents.get(host)?.destroy();
      this.#agents.delete(host);
    }
  }

  #refusal(host: string, { signal }: PeerRequest, error: Error): Error {
    if (signal?.aborted === true) return signal.reason as Error;
    if (isHibernautError(error)) return error;
    return hostSilent(host, messageOf(error), error);
  }
}

/**
 * Returns the headers with the length of exactly what is sent: behind a wrong one, the other host would take the next
 * request on the connection for a body, or a body for the next request.
 */
function framed({ headers, body }: PeerRequest): IncomingHttpHeaders {
  const { "content-length": length, "transfer-encoding": _coding, ...others } = headers;
  if (body === undefined) return others;
  if (Buffer.isBuffer(body)) return { ...others, "content-length": String(body.length) };
  return { ...others, ...(length === undefined ? { "transfer-encoding": "chunked" } : { "content-length": length }) };
}

/** The error for a host that does not answer. */
export function hostSilent(host: string, why: string, cause?: unknown): HibernautError {
  const message = `Host ${host} does not answer (${why}). See \`hibernaut cluster status\`, and try again.`;
  return new HibernautError("host_unreachable", message, { host }, { cause });
}

/** A kept connection was closed just when a request was sent. */
class StaleConnection extends Error {}
