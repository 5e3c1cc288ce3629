/** The spans of one request at the proxy. */
import { type Attributes, context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { SpanClock } from "./clock.ts";
import type { RequestTrace, TracedLease, TracedOrigin, TracedRequest } from "./contract.ts";
import { traceparentOf, withTraceparent } from "./parent.ts";

/** From this status on, it is the server that failed. */
const SERVER_ERROR = 500;

/** What a request is traced with, by the names of OpenTelemetry's semantic conventions where they have one. */
export function attributesOf(request: TracedRequest, { requestId, clientAddress, secure }: TracedOrigin): Attributes {
  return {
    "http.request.method": request.method,
    "url.scheme": secure ? "https" : "http",
    "url.path": request.target.split("?", 1)[0] ?? "",
    "server.address": request.host,
    "client.address": clientAddress,
    "network.protocol.version": request.httpVersion,
    "hibernaut.request_id": requestId,
  };
}

export class RequestSpans implements RequestTrace {
  readonly #tracer: Tracer;
  readonly #request: Span;
  /** Whether the client sent a `traceparent` that the `tracestate` belongs to. */
  readonly #hasParent: boolean;
  readonly #clock: SpanClock;
  #hold: Span | undefined;
  #connect: Span | undefined;
  #forward: Span | undefined;

  constructor(tracer: Tracer, request: Span, { hasParent, clock }: { hasParent: boolean; clock: SpanClock }) {
    this.#tracer = tracer;
    this.#clock = clock;
    this.#request = request;
    this.#hasParent = hasParent;
  }

  wakeParent(): string {
    this.holds();
    return traceparentOf((this.#hold as Span).spanContext());
  }

  holds(): void {
    this.#hold ??= this.#child("hold", SpanKind.INTERNAL);
  }

  leased(lease: TracedLease): void {
    this.#hold?.setAttributes({ ...machineOf(lease), "hibernaut.wake": lease.wake.kind }).end(this.#clock());
    this.#hold = undefined;
    this.#request.setAttributes({ ...machineOf(lease), "hibernaut.wake": lease.wake.kind });
  }

  connects(): void {
    this.#connect ??= this.#child("connect", SpanKind.INTERNAL);
  }

  connected(error?: unknown): void {
    if (error !== undefined) fail(this.#connect, "not_connected");
    this.#connect?.end(this.#clock());
    this.#connect = undefined;
  }

  forwards(request: TracedRequest, lease: TracedLease): void {
    // A kept connection that had died is replaced without another word.
    this.gaveUp("not_connected");
    const attributes = { ...machineOf(lease), "http.request.method": request.method };
    this.#forward = this.#child("forward", SpanKind.CLIENT, attributes);
    request.fields = withTraceparent(request.fields, traceparentOf(this.#forward.spanContext()), this.#hasParent);
  }

  gaveUp(why: string): void {
    fail(this.#forward, why);
    this.sentOn();
  }

  sentOn(): void {
    this.#forward?.end(this.#clock());
    this.#forward = undefined;
  }

  ends({ status, error, appName, wake }: Parameters<RequestTrace["ends"]>[0]): void {
    const failed = error ?? (status !== undefined && status >= SERVER_ERROR ? String(status) : undefined);
    for (const span of [this.#hold, this.#connect, this.#forward, this.#request]) {
      if (span !== undefined && failed !== undefined) fail(span, failed);
    }
    if (status !== undefined) {
      this.#forward?.setAttribute("http.response.status_code", status);
      this.#request.setAttribute("http.response.status_code", status);
    }
    if (appName !== undefined) this.#request.setAttribute("hibernaut.app", appName);
    if (wake !== undefined) this.#request.setAttribute("hibernaut.wake", wake.kind);
    const now = this.#clock();
    for (const span of [this.#hold, this.#connect, this.#forward, this.#request]) span?.end(now);
    this.#hold = this.#connect = this.#forward = undefined;
  }

  #child(name: string, kind: SpanKind, attributes: Attributes = {}): Span {
    const startTime = this.#clock();
    return this.#tracer.startSpan(
      name,
      { kind, attributes, startTime },
      trace.setSpan(context.active(), this.#request),
    );
  }
}

function machineOf({ machineId, appName, peer }: TracedLease): Attributes {
  const where = peer && { "hibernaut.host": peer.host };
  return { "hibernaut.machine": machineId, "hibernaut.app": appName, ...where };
}

function fail(span: Span | undefined, why: string): void {
  span?.setAttribute("error.type", why).setStatus({ code: SpanStatusCode.ERROR });
}
