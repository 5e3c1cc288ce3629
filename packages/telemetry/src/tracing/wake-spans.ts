/** The spans of wakes: each belongs to the trace of the request that asked for it, and has the steps of the start. */
import type { Operation } from "@hibernaut/domain/operation";
import { type Context, context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import { spanClock } from "./clock.ts";
import type { WakeTraces } from "./contract.ts";
import { parseTraceparent } from "./parent.ts";

/** A request that asked longer ago is not what a start is for, in milliseconds: no request waits that long. */
const FORGOTTEN_MS = 600_000;
/** Reasons may hold what a guest says. */
const LONGEST_REASON = 200;

interface Asked {
  parent: string;
  at: number;
}

export class WakeSpans implements WakeTraces {
  readonly #tracer: Tracer;
  /** By machine; one for each that is being started for a traced request. */
  readonly #asked = new Map<string, Asked>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  asked(machineId: string, parent: string): void {
    this.#asked.set(machineId, { parent, at: performance.now() });
  }

  refused(machineId: string): void {
    this.#asked.delete(machineId);
  }

  operation(operation: Operation): void {
    const { type, machineId, outcome } = operation;
    // A request that comes during a suspend turns it around, or waits for its end.
    if (type === "suspend" && outcome !== "cancelled") return;
    const asked = this.#asked.get(machineId);
    this.#asked.delete(machineId);
    if (type === "suspend" || asked === undefined || asked.at < performance.now() - FORGOTTEN_MS) return;
    const parent = parseTraceparent(asked.parent);
    if (parent === undefined) return;
    const above = trace.setSpanContext(context.active(), parent);
    const clock = spanClock();
    const span = this.#span("wake", clock(operation.began), above);
    for (const step of operation.steps)
      this.#span(step.name, clock(step.began), trace.setSpan(above, span)).end(clock(step.ended));
    span.setAttributes(attributesOf(operation));
    if (outcome !== "ok") span.setAttribute("error.type", outcome).setStatus({ code: SpanStatusCode.ERROR });
    span.end(clock(operation.ended));
  }

  #span(name: string, startTime: number, parent: Context): Span {
    return this.#tracer.startSpan(name, { kind: SpanKind.INTERNAL, startTime }, parent);
  }
}

function attributesOf({ machineId, app, kind, reason }: Operation) {
  return {
    "hibernaut.machine": machineId,
    "hibernaut.app": app,
    ...(kind !== undefined && { "hibernaut.wake": kind }),
    ...(reason !== undefined && { "hibernaut.reason": reason.slice(0, LONGEST_REASON) }),
  };
}
