/**
 * One request and its response: finds a machine, sends, streams both ways, repeats what is safe to repeat, and
 * tells lease and log how it ended. It knows neither HTTP/1.1 nor HTTP/2 of the client: see {@link ClientSide}.
 *
 *     seeking --connection--> waiting --head--> answering --end--> sending --sent--> over
 *        ^                       |  `--101--> tunnel -----------------------closed----^
 *        +-------- retry --------+
 *
 * From everywhere: a refusal goes to sending, a client or an app that breaks off to over.
 */
import type { Socket } from "node:net";
import { type Field, type Lease, ProxyRefusal, type RequestHead } from "../contract.ts";
import type { Peer } from "./admission.ts";
import { lastChunk, pushChunk } from "./chunked.ts";
import { connect } from "./connect.ts";
import type { Engine } from "./engine.ts";
import { Malformed, TooLarge } from "./grammar.ts";
import { type Answer, answerOf, interimOf, type Origin, passingTrailers, requestHead } from "./heads.ts";
import { toProxyRefusal, ENDINGS, REFUSALS, proxyRefusal, refusalAnswer, unreachable } from "./refusals.ts";
import { MachineLeft } from "./connection-pool.ts";
import type { RequestMessage } from "./request.ts";
import type { ResponseMessage } from "./response.ts";
import { needsTrust } from "./trust.ts";
import type { TunnelWatch } from "./tunnel.ts";
import type { ResponseHandler, UpstreamConnection } from "./upstream.ts";

/** The client's side of an exchange. */
export interface ClientSide {
  /** Lets the request's body flow, or holds it back; it is held back at first. */
  resumeBody(): void;
  pauseBody(): void;
  /** Throws away what is left of the request's body. */
  dropBody(): void;
  /** These three return false when the client reads slower than we write; it then says so with `onClientRoom`. */
  sendInterim(answer: Answer): boolean;
  sendHead(answer: Answer): boolean;
  sendData(piece: Buffer): boolean;
  /** Ends the response; calls back when its last byte was sent. */
  sendEnd(trailers: readonly Field[], whenSent: () => void): void;
  /** Cuts the response off so that the client notices. */
  cut(): void;
  /** Answers 101 and connects the two sockets. */
  tunnel(answer: Answer, protocol: string, upstream: Socket, first: Buffer, watch: TunnelWatch): void;
}

/** Methods whose request may be sent twice (RFC 9110 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

type Phase = "seeking" | "waiting" | "answering" | "sending" | "tunnel" | "over";

export class Exchange implements ResponseHandler {
  readonly #engine: Engine;
  readonly #client: ClientSide;
  readonly #message: RequestMessage;
  readonly #origin: Origin;
  readonly #peer: Peer;
  readonly #begun = performance.now();
  readonly #time = Date.now();
  readonly #tried: string[] = [];
  /** Why the last of them did not answer. */
  #failure: ProxyRefusal | undefined;
  /** Made for those who wait; most requests find a machine and a connection to it at once. */
  #abort: AbortController | undefined;
  /** Why nobody needs to wait any more. */
  #ended: Error | undefined;
  #phase: Phase = "seeking";
  #deadline = Number.POSITIVE_INFINITY;
  /** Whether something moved since the deadline was set. */
  #moved = true;
  #lease: Lease | undefined;
  #connection: UpstreamConnection | undefined;
  /** Whether any part of the body was taken from the client: then it cannot be sent again. */
  #bodyTaken = false;
  #bodyHeld = true;
  /** Whether the app is held back because the client reads slowly. */
  #clientFull = false;
  #cutting = false;
  #requestDone: boolean;
  #status: number | undefined;
  #bytesIn = 0;
  #bytesOut = 0;

  constructor(engine: Engine, client: ClientSide, message: RequestMessage, origin: Origin, peer: Peer) {
    this.#engine = engine;
    this.#client = client;
    this.#message = message;
    this.#origin = origin;
    this.#peer = peer;
    const { framing } = message;
    this.#requestDone = framing.kind === "none" || (framing.kind === "length" && framing.length === 0);
  }

  start(): void {
    this.#engine.requests += 1;
    const { framing } = this.#message;
    if (framing.kind === "length" && framing.length > this.#engine.limits.bodyBytes)
      return this.#refuse(toProxyRefusal(this.#bodyTooLarge()));
    this.#seek(false);
  }

  // The client's events.

  requestData(piece: Buffer): void {
    this.#bodyTaken = true;
    this.#bytesIn += piece.length;
    if (this.#bytesIn > this.#engine.limits.bodyBytes) throw this.#bodyTooLarge();
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#touch();
    const { outbox } = connection;
    const room = this.#message.framing.kind === "chunked" ? pushChunk(outbox, piece) : outbox.push(piece);
    if (!room) this.#holdBody();
  }

  requestEnd(trailers: readonly Field[]): void {
    this.#requestDone = true;
    if (this.#message.framing.kind === "chunked") {
      this.#bodyTaken = true;
      const forbidden = this.#peer.trusted ? () => false : needsTrust;
      this.#connection?.outbox.push(lastChunk(passingTrailers(trailers, forbidden)));
    }
    this.#touch();
  }

  /** The client's body is not what its head promised. */
  requestFailed(error: unknown): void {
    if (this.#phase === "seeking" || this.#phase === "waiting") this.#refuse(toProxyRefusal(error));
    else if (this.#phase === "answering") this.#break(toProxyRefusal(error).code);
  }

  onClientRoom(): void {
    this.#clientFull = false;
    this.#connection?.resume();
    this.#touch();
  }

  clientGone(): void {
    if (this.#phase !== "tunnel") this.#settle(ENDINGS.clientGone);
  }

  // The way to a machine.

  /** Finds a machine and a connection to it, a new one if it must be `fresh`, and sends the head. */
  #seek(fresh: boolean): void {
    this.#phase = "seeking";
    this.#touch();
    try {
      const found = this.#lease ?? this.#acquire();
      if (!(found instanceof Promise)) {
        this.#lease = found;
        const kept = fresh ? undefined : this.#engine.pool.take(found);
        if (kept !== undefined) return this.#send(kept);
      }
      void this.#await(found, fresh);
    } catch (error) {
      this.#refuse(this.#explain(error));
    }
  }

  /** The same, for a request that has to wait: for a machine, or for a connection. */
  async #await(found: Lease | Promise<Lease>, fresh: boolean): Promise<void> {
    try {
      if (found instanceof Promise) this.#lease = await this.#unlessEnded(found);
      while (this.#phase === "seeking") {
        this.#lease ??= await this.#unlessEnded(this.#acquire());
        const kept = fresh ? undefined : this.#engine.pool.take(this.#lease);
        const connection = kept ?? (await this.#connect(this.#lease));
        if (connection !== undefined) return this.#send(connection);
      }
    } catch (error) {
      // Otherwise it was ended in the meantime, and this is only the echo of the abort.
      if (this.#phase === "seeking") this.#refuse(this.#explain(error));
    }
  }

  #acquire(): Lease | Promise<Lease> {
    const { method, target, host, httpVersion, fields } = this.#message;
    const { clientAddress, secure, requestId } = this.#origin;
    const { connection } = this.#peer;
    const tried = this.#tried;
    const origin = { clientAddress, secure, requestId, connection, tried };
    const head: RequestHead = { method, target, host, httpVersion, fields, ...origin };
    return this.#engine.leases.acquire(head, () => this.#signal);
  }

  /** Gives a lease back that came too late. */
  async #unlessEnded(found: Lease | Promise<Lease>): Promise<Lease> {
    const lease = await found;
    if (this.#phase === "seeking") return lease;
    const reason = this.#ended;
    lease.release({ status: this.#status, error: reason instanceof ProxyRefusal ? reason.code : ENDINGS.clientGone });
    throw new Error("The request has ended.");
  }

  get #signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#ended !== undefined) this.#abort.abort(this.#ended);
    return this.#abort.signal;
  }

  async #connect(lease: Lease): Promise<UpstreamConnection | undefined> {
    const { address, port, connectDeadline: deadline } = lease;
    const { limits, pool } = this.#engine;
    const signal = this.#signal;
    try {
      return await pool.add(lease, (left) =>
        connect({ address, port, deadline, signal: AbortSignal.any([signal, left]), limits }),
      );
    } catch (error) {
      if (error instanceof ProxyRefusal || this.#phase !== "seeking") throw error;
      if (error instanceof MachineLeft) return this.#letGo("machine_left");
      const failure = unreachable(lease, error);
      if (this.#nextMachine(failure)) return undefined;
      throw failure;
    }
  }

  /** Gives the machine back, which may be the right one again: when it is back, or woken. */
  #letGo(why: string): undefined {
    this.#lease?.release({ error: why });
    this.#lease = undefined;
  }

  /** Gives the machine back, which failed. False when the request has had all its tries; the refusal gives it back. */
  #nextMachine(failure: ProxyRefusal): boolean {
    this.#failure = failure;
    if (this.#lease !== undefined) this.#tried.push(this.#lease.machineId);
    if (this.#tried.length >= this.#engine.limits.tries) return false;
    this.#letGo(failure.code);
    return true;
  }

  #send(connection: UpstreamConnection): void {
    if (this.#phase !== "seeking") return connection.destroy();
    this.#phase = "waiting";
    this.#connection = connection;
    connection.begin(this, this.#message.method, this.#message.upgrade !== undefined);
    connection.outbox.push(requestHead(this.#message, this.#origin));
    this.#touch();
    if (!this.#requestDone) this.#letBody();
  }

  // The app's events.

  onRoom(): void {
    if (!this.#requestDone) this.#letBody();
    this.#touch();
  }

  onInterim(response: ResponseMessage): void {
    this.#touch();
    if (!this.#client.sendInterim(interimOf(response))) this.#holdApp();
  }

  onHead(response: ResponseMessage): void {
    this.#phase = "answering";
    this.#status = response.status;
    this.#touch();
    const wake = (this.#lease as Lease).wake;
    if (!this.#client.sendHead(answerOf(response, this.#origin.requestId, wake))) this.#holdApp();
  }

  onData(piece: Buffer): void {
    this.#bytesOut += piece.length;
    this.#touch();
    if (!this.#client.sendData(piece)) this.#holdApp();
  }

  onEnd(trailers: readonly Field[]): void {
    const connection = this.#connection;
    this.#connection = undefined;
    // An app that answers before it has read the whole request is not asked anything else on this connection.
    if (this.#requestDone && this.#lease !== undefined && connection !== undefined)
      this.#engine.pool.give(this.#lease, connection);
    else connection?.destroy();
    this.#finish(passingTrailers(trailers, needsTrust), undefined);
  }

  onUpgrade(response: ResponseMessage, socket: Socket, first: Buffer): void {
    this.#phase = "tunnel";
    this.#connection = undefined;
    this.#status = response.status;
    this.#touch();
    const answer = answerOf(response, this.#origin.requestId, (this.#lease as Lease).wake);
    this.#lease?.upgraded?.();
    this.#client.tunnel(answer, response.upgrade ?? "", socket, first, {
      onClientData: () => this.#lease?.wanted?.(),
      onClose: ({ bytesIn, bytesOut, error }) => {
        this.#bytesIn += bytesIn;
        this.#bytesOut += bytesOut;
        this.#settle(this.#cutting ? ENDINGS.cut : error);
      },
    });
  }

  onFailed(error: Error): void {
    const connection = this.#connection;
    this.#connection = undefined;
    if (this.#phase === "answering") return this.#break(ENDINGS.upstreamBroke);
    if (error instanceof Malformed)
      return this.#refuse(
        proxyRefusal("upstream_invalid", `The app's answer is not acceptable HTTP. ${error.message}`),
      );
    const unsent = connection?.outbox.written === 0;
    const repeatable = !this.#bodyTaken && !connection?.answering && (unsent || IDEMPOTENT.has(this.#message.method));
    this.#holdBody();
    // The app closed a kept connection in the moment that we used it: that says nothing against the machine.
    if (repeatable && connection?.reused) return this.#seek(true);
    const message = "The app closed the connection without an answer. Its log may say why.";
    const failure = proxyRefusal("upstream_closed", message, { cause: error });
    if (repeatable && this.#nextMachine(failure)) return this.#seek(false);
    this.#refuse(failure);
  }

  // The ends.

  /** Answers in the app's place. */
  #refuse(error: ProxyRefusal): void {
    this.#status = error.status;
    this.#phase = "sending";
    this.#dropConnection(error);
    this.#client.dropBody();
    const { answer, body } = refusalAnswer(error, this.#origin.requestId);
    const headOnly = this.#message.method === "HEAD";
    this.#client.sendHead(headOnly ? { ...answer, framing: { kind: "none" } } : answer);
    if (!headOnly) {
      this.#bytesOut += body.length;
      this.#client.sendData(body);
    }
    this.#finish([], error.code);
  }

  #finish(trailers: readonly Field[], error: string | undefined): void {
    this.#phase = "sending";
    this.#touch();
    this.#client.sendEnd(trailers, () => this.#settle(error));
  }

  /** Ends a response that cannot be completed: the client must not take it for whole. */
  #break(error: string): void {
    this.#settle(error);
    this.#client.cut();
  }

  #settle(error: string | undefined): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#engine.requests -= 1;
    if (error !== undefined) this.#dropConnection(new Error(`The request has ended: ${error}.`));
    this.#lease?.release({ status: this.#status, error });
    this.#log(error);
  }

  #dropConnection(reason: Error): void {
    this.#ended = reason;
    this.#abort?.abort(reason);
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  #log(error: string | undefined): void {
    const { method, host, target, httpVersion } = this.#message;
    const { requestId, clientAddress } = this.#origin;
    this.#engine.onAccess({
      ...{ time: this.#time, requestId, method, host, target, httpVersion, clientAddress, status: this.#status },
      bytesIn: this.#bytesIn,
      bytesOut: this.#bytesOut,
      durationMs: performance.now() - this.#begun,
      wake: this.#lease?.wake,
      machineId: this.#lease?.machineId,
      appName: this.#lease?.appName,
      error,
    });
  }

  // Time.

  /** Something moved: whoever is waited for now has its whole time again, from the next tick on. */
  #touch(): void {
    this.#moved = true;
  }

  /** How long the one may take who is waited for, in milliseconds. */
  #patience(): number {
    const { limits } = this.#engine;
    switch (this.#phase) {
      case "seeking":
        return limits.acquireMs;
      case "waiting":
        return this.#requestDone || this.#bodyHeld ? limits.responseHeadMs : limits.requestBodyMs;
      case "answering":
        return this.#clientFull ? limits.clientStallMs : limits.responseBodyMs;
      case "sending":
        return limits.clientStallMs;
      default:
        return Number.POSITIVE_INFINITY;
    }
  }

  tick(now: number): void {
    if (this.#phase === "over") return;
    if (this.#moved) this.#deadline = now + this.#patience();
    this.#moved = false;
    if (now < this.#deadline) return;
    if (this.#phase === "seeking")
      this.#refuse(proxyRefusal("wake_timeout", "No machine of the app was ready in time."));
    else if (this.#phase === "sending" || this.#clientFull) this.#break(ENDINGS.clientStalled);
    else if (this.#phase === "answering") this.#break(ENDINGS.upstreamStalled);
    else if (this.#requestDone || this.#bodyHeld)
      this.#refuse(proxyRefusal("upstream_timeout", "The app did not answer in time."));
    else this.#refuse(proxyRefusal("request_timeout", "The request's body did not come in time."));
  }

  cut(): void {
    this.#cutting = true;
    if (this.#phase === "tunnel") this.#client.cut();
    else this.#break(ENDINGS.cut);
  }

  #holdApp(): void {
    this.#clientFull = true;
    this.#connection?.pause();
    this.#touch();
  }

  #letBody(): void {
    this.#bodyHeld = false;
    this.#client.resumeBody();
  }

  #holdBody(): void {
    this.#bodyHeld = true;
    this.#client.pauseBody();
  }

  #bodyTooLarge(): TooLarge {
    return new TooLarge("body", `A request's body takes at most ${this.#engine.limits.bodyBytes} bytes.`);
  }

  /** Faults of ours are reported, and not shown. */
  #explain(error: unknown): ProxyRefusal {
    const refused = toProxyRefusal(error);
    // Why the only machine there is did not answer says more than that there is no other.
    if (refused.code === "no_machine_left" && this.#failure !== undefined && this.#tried.length === 1)
      return this.#failure;
    if (refused.status === REFUSALS.internal) this.#engine.onFault(error);
    return refused;
  }
}
