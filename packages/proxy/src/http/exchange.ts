/**
 * One request and its response: streams both ways, repeats what is safe to repeat, and notices how it ends. The request
 * path (request-path.ts) finds the machine for it. The client's protocol is hidden behind {@link ClientSide}.
 *
 *     seeking --connection--> waiting --head--> answering --end--> sending --sent--> over
 *        ^                       |  `--101--> tunnel -----------------------closed----^
 *        +---- retry, replay ----+
 *
 * From every phase, a refusal leads to sending, and a client or an app that breaks off leads to over.
 */
import { background } from "@hibernaut/lib/background";
import type { AccessEntry, Field, Lease, LeasePeer, ProxyRefusal } from "../contract.ts";
import type { Peer } from "./admission.ts";
import { type AppRequest, type ResponseHandler, StreamReset, type Upgraded } from "./app-request.ts";
import { challengeAnswer } from "./challenge.ts";
import type { ClientSide, RequestHandler } from "./client-side.ts";
import type { Engine, PathExchange } from "./engine.ts";
import { awaited, type ExchangePhase, Patience, patienceMs, timeoutEnding } from "./exchange-deadlines.ts";
import { afterFailure, isIdempotent } from "./exchange-failure.ts";
import { grpcAnswer, isGrpc } from "./grpc.ts";
import { type Answer, answerOf, interimOf, type Origin, passingTrailers } from "./heads.ts";
import { type Begun, MachineSearch } from "./machine-search.ts";
import { type PeerRefusal, peerAnswer, peerRefusal, refusedByPeer, wakeAtPeer } from "./peer-heads.ts";
import { ENDINGS, MOVED, mayHelpElsewhere, refusalAnswer, toProxyRefusal } from "./refusals.ts";
import { bodyRefusal, Replay, replaySource } from "./replay.ts";
import { endsWithHead, type RequestMessage } from "./request.ts";
import { RequestBody } from "./request-body.ts";
import type { ResponseMessage } from "./response.ts";
import { needsTrust } from "./trust.ts";
import { webSocketFault } from "./websocket.ts";

export class Exchange implements PathExchange, RequestHandler, ResponseHandler {
  readonly search: MachineSearch;
  status: number | undefined;
  readonly #engine: Engine;
  readonly #client: ClientSide;
  readonly #message: RequestMessage;
  readonly #origin: Origin;
  readonly #peer: Peer;
  readonly #begun = performance.now();
  readonly #time = Date.now();
  #phase: ExchangePhase = "seeking";
  readonly #patience = new Patience();
  #connection: AppRequest | undefined;
  /** Whether a new connection was made because a kept one had died. */
  #afresh = false;
  readonly #body: RequestBody;
  #bodyHeld = true;
  #replay: Replay | undefined;
  readonly #source: string | undefined;
  /** What the proxy of another host answered in the app's place, until its answer has ended. */
  #refused: PeerRefusal | undefined;
  /** Whether what was kept of the body has to be sent again. */
  #sendsKept = false;
  /** Whether an app may have seen the request. */
  #seen = false;
  /** Whether the app is held back because the client reads slowly. */
  #clientFull = false;
  #cutting = false;
  /** What came through after the upgrade. */
  #tunneledIn = 0;
  #bytesOut = 0;

  constructor(engine: Engine, client: ClientSide, begun: Begun) {
    this.#engine = engine;
    this.#client = client;
    this.#message = begun.message;
    this.#origin = begun.origin;
    this.#peer = begun.peer;
    this.#source = begun.source;
    this.search = new MachineSearch(engine, begun, this.#begun);
    this.#body = new RequestBody(engine.bodies, endsWithHead(begun.message));
  }

  // From the client.

  requestData(piece: Buffer): void {
    this.#body.add(piece, this.#engine.limits.bodyBytes);
    if (this.#phase === "waiting" || this.#phase === "seeking")
      this.#body.keep(piece, this.search.lease?.appName ?? "");
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#lease.moved?.(piece.length, 0);
    this.#patience.touch();
    if (!connection.sendBody(piece)) this.#holdBody();
  }

  requestEnd(trailers: readonly Field[]): void {
    this.#body.done = true;
    if (this.#message.framing.kind === "chunked") {
      this.#body.taken = true;
      const forbidden = this.#peer.trusted ? () => false : needsTrust;
      this.#body.trailers = passingTrailers(trailers, forbidden);
    }
    this.#connection?.sendEnd(this.#body.trailers);
    this.#patience.touch();
  }

  requestFailed(error: unknown): void {
    if (this.#phase === "seeking" || this.#phase === "waiting") this.refuse(toProxyRefusal(error));
    else if (this.#phase === "answering") this.#break(toProxyRefusal(error).code);
  }

  onClientRoom(): void {
    this.#clientFull = false;
    this.#connection?.resume();
    this.#patience.touch();
  }

  clientGone(): void {
    if (this.#phase !== "tunnel") this.#settle(ENDINGS.clientGone);
  }

  // To the app.

  forward(connection: AppRequest): void {
    if (this.#phase !== "seeking") return connection.destroy();
    this.#phase = "waiting";
    this.search.active = false;
    this.#connection = connection;
    this.search.trace?.forwards(this.#message, this.#lease);
    this.#seen = true;
    connection.begin(this, this.#message, this.#origin, this.#replay?.source ?? this.#source, this.#lease);
    if (this.#replay !== undefined || this.#sendsKept) this.#pushKept(connection);
    this.#patience.touch();
    if (!this.#body.done && !connection.full) this.#releaseBody();
  }

  /** Repeats what was already taken of the body, for the machine that the request was sent on to. */
  #pushKept(connection: AppRequest): void {
    for (const piece of this.#body.pieces) {
      this.#lease.moved?.(piece.length, 0);
      connection.sendBody(piece);
    }
    if (this.#body.done) connection.sendEnd(this.#body.trailers);
  }

  onRoom(): void {
    if (!this.#body.done && this.#replay?.order === undefined) this.#releaseBody();
    this.#patience.touch();
  }

  // From the app.

  onInterim(response: ResponseMessage): void {
    this.#patience.touch();
    if (!this.#client.sendInterim(interimOf(response))) this.#holdApp();
  }

  onHead(response: ResponseMessage): void {
    const { peer } = this.#lease;
    if (peer !== undefined && this.#heardPeer(peer, response)) return;
    // The proxy of the other host, which has the body, follows it.
    if (response.replay !== undefined && !this.#engine.fromPeers) return this.#beginReplay(response.replay);
    if (this.#message.webSocketKey !== undefined && this.#refuseFalseSocket(response)) return;
    this.#phase = "answering";
    this.#body.forget();
    this.status = response.status;
    this.#patience.touch();
    if (!this.#client.sendHead(this.#answerOf(response))) this.#holdApp();
  }

  /** Adopts what the proxy of another host says. Returns whether it answered in the app's place. */
  #heardPeer(peer: LeasePeer, response: ResponseMessage): boolean {
    this.#refused = refusedByPeer(response);
    if (this.#refused === undefined) peer.answered(wakeAtPeer(response.fields));
    else this.#holdBody();
    return this.#refused !== undefined;
  }

  /** The proxy of another host has no answer of the app: another machine may, or the same one where it is now. */
  #afterRefusal({ refusal, seen }: PeerRefusal): void {
    this.#refused = undefined;
    this.#seen = seen;
    if (!this.#body.whole || (seen && !isIdempotent(this.#message.method)) || !mayHelpElsewhere(refusal))
      return this.refuse(refusal);
    this.#sendsKept = this.#body.taken;
    const { lease } = this.search;
    if (refusal.code !== MOVED && this.search.tryAnother(refusal)) return this.#retry(false);
    if (refusal.code !== MOVED || lease === undefined || !this.search.startAgain()) return this.refuse(refusal);
    this.#seek(false);
    background(this.#engine.findMoved(this, lease), "finding a machine that moved");
  }

  /** Refuses a response that would look like an open WebSocket over HTTP/2. Returns whether it did. */
  #refuseFalseSocket(response: ResponseMessage): boolean {
    const fault = webSocketFault(this.#message, response);
    if (fault === undefined) return false;
    this.#connection?.destroy();
    this.onFailed(fault);
    return true;
  }

  #answerOf(response: ResponseMessage): Answer {
    const { requestId, secure } = this.#origin;
    if (this.#engine.fromPeers) return peerAnswer(response, this.#lease);
    return answerOf(response, requestId, this.#lease, secure ? this.#engine.secureFields : undefined);
  }

  onData(piece: Buffer): void {
    if (this.#refused !== undefined) return;
    if (this.#replay?.order !== undefined) {
      if (this.#replay.drain(piece.length, this.#engine.limits)) this.#sendOn();
      return;
    }
    this.#bytesOut += piece.length;
    this.#lease.moved?.(0, piece.length);
    this.#patience.touch();
    if (!this.#client.sendData(piece)) this.#holdApp();
  }

  onEnd(trailers: readonly Field[]): void {
    const connection = this.#connection;
    this.#connection = undefined;
    // An app that responds before it has read the whole request is not asked anything else on this connection.
    if (this.#body.done && connection !== undefined) this.#engine.pool.give(this.#lease, connection);
    else connection?.destroy();
    if (this.#refused !== undefined) return this.#afterRefusal(this.#refused);
    if (this.#replay?.order !== undefined) return this.#sendOn();
    this.#end(passingTrailers(trailers, needsTrust), undefined);
  }

  onUpgrade(response: ResponseMessage, upgraded: Upgraded): void {
    this.#lease.peer?.answered(wakeAtPeer(response.fields));
    if (this.#refuseFalseSocket(response)) return void upgraded.socket.destroy();
    this.#phase = "tunnel";
    this.#connection = undefined;
    this.status = this.#message.webSocketKey === undefined ? response.status : 200;
    this.#patience.touch();
    const lease = this.#lease;
    lease.upgraded?.();
    const answer = this.#answerOf(response);
    this.#client.tunnel(answer, response.upgrade ?? "", upgraded, {
      onClientData: () => lease.wanted?.(),
      onMoved: (bytesIn, bytesOut) => lease.moved?.(bytesIn, bytesOut),
      onQuiet: (quiet) => lease.quiet?.(quiet),
      onClose: ({ bytesIn, bytesOut, error }) => {
        this.#tunneledIn += bytesIn;
        this.#bytesOut += bytesOut;
        this.#settle(this.#cutting ? ENDINGS.cut : error);
      },
    });
  }

  onFailed(error: Error): void {
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection?.unseen === true) this.#seen = false;
    if (this.#refused !== undefined) return this.#afterRefusal(this.#refused);
    if (this.#replay?.order !== undefined) return this.#sendOn();
    if (this.#phase === "answering")
      return this.#break(ENDINGS.upstreamBroke, error instanceof StreamReset ? error.code : undefined);
    const may = connection?.unseen === true || isIdempotent(this.#message.method);
    const repeatable = !this.#body.taken && !connection?.answering && may;
    const reused = connection?.reused === true;
    const { remedy, refusal } = afterFailure({ error, repeatable, reused, afresh: this.#afresh });
    this.#holdBody();
    if (remedy === "new connection") return this.#retry(true);
    if (remedy === "start again" && this.search.startAgain()) return this.#retry(false);
    if (remedy === "another machine" && this.search.tryAnother(refusal)) return this.#retry(false);
    this.refuse(refusal);
  }

  // When the app sends the request on.

  /** Reads the rest of the answer, which nobody sees. */
  #beginReplay(order: string): void {
    this.#replay ??= new Replay();
    this.#replay.begin(order);
    this.#holdBody();
  }

  /** The answer has ended, or is too long to wait for. */
  #sendOn(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
    const [replay, from, { limits }] = [this.#replay as Replay, this.#lease, this.#engine];
    try {
      const order = replay.take(from, limits);
      if (!this.#body.whole) throw bodyRefusal(from.appName, this.#body.bytes, limits);
      replay.source = replaySource(from, order.state, Date.now());
      this.search.sendTo(this.#engine.replayTo(order, from.appName));
    } catch (error) {
      return this.refuse(this.search.refusalFor(error));
    }
    this.#retry(false);
  }

  #retry(fresh: boolean): void {
    this.#seek(fresh);
    this.#engine.findMachine(this, fresh);
  }

  #seek(fresh: boolean): void {
    this.#phase = "seeking";
    this.#afresh = fresh;
    this.search.active = true;
    this.#patience.touch();
  }

  // The end.

  refuse(refusal: ProxyRefusal): void {
    this.#phase = "sending";
    this.#body.forget();
    this.#dropConnection(refusal);
    const { requestId } = this.#origin;
    if (this.#engine.fromPeers) return this.#respond(peerRefusal(refusal, this.#seen), refusal.code);
    const answer = isGrpc(this.#message)
      ? grpcAnswer(refusal, requestId)
      : refusalAnswer(refusal, requestId, this.#engine.wakePage);
    this.#respond(answer, refusal.code);
  }

  /** Answers the challenge of a certificate authority. No machine is asked. */
  answer(text: string): void {
    this.search.end(new Error("The proxy answers the request itself."));
    this.#respond(challengeAnswer(text, this.#origin.requestId), undefined);
  }

  #respond({ answer, body }: { answer: Answer; body: Buffer }, error: string | undefined): void {
    this.status = answer.status;
    this.#phase = "sending";
    this.#client.dropBody();
    const headOnly = this.#message.method === "HEAD";
    this.#client.sendHead(headOnly ? { ...answer, framing: { kind: "none" } } : answer);
    if (!headOnly) {
      this.#bytesOut += body.length;
      this.#client.sendData(body);
    }
    this.#end([], error);
  }

  cut(): void {
    this.#cutting = true;
    if (this.#phase === "tunnel") this.#client.cut();
    else this.#break(ENDINGS.cut);
  }

  #end(trailers: readonly Field[], error: string | undefined): void {
    this.#phase = "sending";
    this.#patience.touch();
    this.#client.sendEnd(trailers, () => this.#settle(error));
  }

  /** Ends a response that cannot be completed: the client must not mistake it for whole. */
  #break(error: string, reset?: number): void {
    this.#settle(error);
    this.#client.cut(reset);
  }

  #settle(error: string | undefined): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#body.forget();
    if (error !== undefined) this.#dropConnection(new Error(`The request has ended: ${error}.`));
    this.#engine.finish(this, error);
  }

  #dropConnection(reason: Error): void {
    this.search.end(reason);
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  accessEntry(error: string | undefined): AccessEntry {
    const { method, host, target, httpVersion } = this.#message;
    const { requestId, clientAddress } = this.#origin;
    const { lease } = this.search;
    return {
      ...{ time: this.#time, requestId, method, host, target, httpVersion, clientAddress, status: this.status },
      bytesIn: this.#body.bytes + this.#tunneledIn,
      bytesOut: this.#bytesOut,
      durationMs: performance.now() - this.#begun,
      wake: lease?.wake,
      machineId: lease?.machineId,
      appName: lease?.appName,
      error,
    };
  }

  // Time and flow.

  tick(now: number): void {
    if (this.#phase === "over") return;
    const { limits } = this.#engine;
    const { lease } = this.search;
    const what = awaited(this.#phase, this.#body.done || this.#bodyHeld, this.#clientFull);
    const ms = patienceMs(what, limits, lease?.peer !== undefined);
    // Messages of HTTP/2 may be small. The proxy of another host knows whether its app speaks that.
    const part = lease?.http2 === true || lease?.peer !== undefined ? 0 : limits.requestBodyLeast;
    if (!this.#patience.isOver(now, what, ms, this.#body.bytes, part)) return;
    const ending = timeoutEnding(what, this.#clientFull);
    if (typeof ending === "string") this.#break(ending);
    else this.refuse(ending);
  }

  #holdApp(): void {
    this.#clientFull = true;
    this.#connection?.pause();
    this.#patience.touch();
  }

  #releaseBody(): void {
    this.#bodyHeld = false;
    this.#client.resumeBody();
  }

  #holdBody(): void {
    this.#bodyHeld = true;
    this.#client.pauseBody();
  }

  /** The lease of a request that was sent. */
  get #lease(): Lease {
    return this.search.lease as Lease;
  }
}
