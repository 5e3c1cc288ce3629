/** Requests to etcd's JSON gateway: over kept connections, to the member that answered last, or else to the next one. */
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { EtcdFault, hasDoneNothing, mayPass, unavailable } from "./faults.ts";
import type { StreamLine } from "./messages.ts";

/** How long one member may take for a request that another one can be sent as well: renewals must fit into a lease. */
const TRY_MS = 1500;
/** How long a write may take, which cannot be sent twice. An election of a leader ends in less. */
const WRITE_MS = 5000;
/** How long a request may take, whichever members it is sent to. */
const TOTAL_MS = 6000;
/** Before a request is sent once more when all members have failed: an election takes about a second. */
const PAUSE_MS = 100;
/** How long a watch may take to begin. */
const BEGIN_MS = 3000;
/** After which silence the kernel asks whether the other side of a connection is still there. */
const KEEP_ALIVE_MS = 5000;
/** etcd ends what it cannot answer because it has lost its leader, instead of waiting for one. */
const HEADERS = { "Content-Type": "application/json", "Grpc-Metadata-hasleader": "true" };

/** Certificates of connections to etcd, PEM. */
export interface EtcdTls {
  /** What signed etcd's certificate. Default: the authorities that Node knows. */
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
}

interface CallOptions {
  /** Whether doing it twice is the same as doing it once. */
  repeatable: boolean;
  signal?: AbortSignal | undefined;
}

export class Gateway {
  readonly #endpoints: readonly URL[];
  readonly #patienceMs: number;
  readonly #agent: Agent;
  readonly #closing = new AbortController();
  #current = 0;
  /** Aborted when another member is used, because this one did not answer. */
  #using = new AbortController();

  /**
   * @param endpoints `http://host:port` or `https://host:port`, all of the same kind
   * @param patienceMs how long a request may take, whichever members it is sent to
   */
  constructor(endpoints: readonly string[], tls: EtcdTls = {}, patienceMs = TOTAL_MS) {
    this.#patienceMs = patienceMs;
    this.#endpoints = endpoints.map((endpoint) => new URL(endpoint));
    if (this.#endpoints.length === 0) throw new Error("etcd has no endpoints");
    const options = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS };
    this.#agent = this.#endpoints[0]?.protocol === "https:" ? new TlsAgent({ ...options, ...tls }) : new Agent(options);
  }

  /**
   * Sends a request and returns the reply, or the first line of it if it is a stream. Throws an EtcdFault that asking
   * again would not mend, `unavailable`, or the signal's reason.
   */
  async call<T>(path: string, body: object, { repeatable, signal }: CallOptions): Promise<T> {
    const end = performance.now() + this.#patienceMs;
    const each = repeatable ? TRY_MS : WRITE_MS;
    /** What a member answered, or why it could not be reached. */
    let told: { error: unknown; origin: string } | undefined;
    for (let tries = 1; ; tries += 1) {
      signal?.throwIfAborted();
      const endpoint = this.#endpoint();
      const limit = AbortSignal.timeout(Math.ceil(Math.max(1, Math.min(end - performance.now(), each))));
      try {
        return await this.#attempt<T>(endpoint, path, body, this.#signals(limit, signal));
      } catch (error) {
        signal?.throwIfAborted();
        if (!mayPass(error)) throw error;
        this.#leave(endpoint);
        // The last try may have next to no time: that it took too long says less than what was told before.
        const cutShort = limit.aborted && performance.now() >= end;
        if (!cutShort || told === undefined) told = { error, origin: endpoint.origin };
        const again = (repeatable || hasDoneNothing(error)) && performance.now() < end - PAUSE_MS;
        if (this.#closing.signal.aborted || !again) throw unavailable(told.error, told.origin);
      }
      if (tries % this.#endpoints.length === 0) await delay(PAUSE_MS);
    }
  }

  /**
   * Sends a request and yields the parts of the reply as they come, until the signal is aborted. Throws what
   * {@link call} throws, also when the member no longer answers other requests.
   */
  async *stream<T>(path: string, body: object, signal: AbortSignal): AsyncIterable<T> {
    const endpoint = this.#endpoint();
    const begin = new AbortController();
    const timer = setTimeout(() => begin.abort(new Error(`no answer within ${BEGIN_MS} ms`)), BEGIN_MS);
    const ending = AbortSignal.any([this.#signals(begin.signal, signal), this.#using.signal]);
    try {
      const reply = await this.#post(endpoint, path, body, ending);
      for await (const line of linesOf(reply)) {
        clearTimeout(timer);
        if (line !== "") yield partOf(line) as T;
      }
      ending.throwIfAborted();
      throw new Error("the connection was closed");
    } catch (error) {
      if (signal.aborted) return;
      if (!mayPass(error)) throw error;
      this.#leave(endpoint);
      throw unavailable(error, endpoint.origin);
    } finally {
      clearTimeout(timer);
      begin.abort(); // a caller that reads no further needs no connection
    }
  }

  /** Closes all connections; what is under way fails. */
  close(): void {
    this.#closing.abort(new Error("it was closed"));
    this.#agent.destroy();
  }

  #endpoint(): URL {
    return this.#endpoints[this.#current] as URL;
  }

  /** Uses the next member, unless that has happened already. */
  #leave(endpoint: URL): void {
    if (this.#endpoint() !== endpoint) return;
    this.#current = (this.#current + 1) % this.#endpoints.length;
    const using = this.#using;
    this.#using = new AbortController();
    using.abort(new Error("it did not answer another request"));
  }

  #signals(limit: AbortSignal, signal: AbortSignal | undefined): AbortSignal {
    return AbortSignal.any([limit, this.#closing.signal, ...(signal === undefined ? [] : [signal])]);
  }

  async #attempt<T>(endpoint: URL, path: string, body: object, signal: AbortSignal): Promise<T> {
    const reply = await text(await this.#post(endpoint, path, body, signal));
    return (isStream(reply) ? partOf(reply) : JSON.parse(reply)) as T;
  }

  async #post(endpoint: URL, path: string, body: object, signal: AbortSignal): Promise<IncomingMessage> {
    signal.throwIfAborted();
    const send = endpoint.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(new URL(path, endpoint), { method: "POST", headers: HEADERS, agent: this.#agent, signal });
    request.end(JSON.stringify(body));
    const [reply] = (await once(request, "response", { signal })) as [IncomingMessage];
    if (reply.statusCode === 200) return reply;
    throw faultOf(await text(reply), reply.statusCode);
  }
}

async function* linesOf(reply: IncomingMessage): AsyncIterable<string> {
  let rest = "";
  for await (const chunk of reply.setEncoding("utf8")) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  yield rest;
}

/** Streams wrap each part; a reply of one part has no such member. */
function isStream(reply: string): boolean {
  return reply.startsWith('{"result"') || reply.startsWith('{"error"');
}

function partOf(line: string): unknown {
  const { result, error } = JSON.parse(line) as StreamLine;
  if (result !== undefined) return result;
  throw new EtcdFault(error?.grpc_code ?? error?.code ?? 0, error?.message ?? line);
}

function faultOf(reply: string, status: number | undefined): Error {
  try {
    const { message, error, code } = JSON.parse(reply) as { message?: string; error?: string; code?: number };
    return new EtcdFault(code ?? 0, message ?? error ?? reply);
  } catch {
    return new Error(`it replies ${status}, which is not from etcd's JSON gateway`);
  }
}
