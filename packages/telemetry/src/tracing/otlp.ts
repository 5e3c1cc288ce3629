/** Traces by OpenTelemetry, sent by OTLP over HTTP. Loaded only when they are on: see open.ts. */

import { setTimeout as delay } from "node:timers/promises";
import { type Context, context, SpanKind, TraceFlags, trace } from "@opentelemetry/api";
import { ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { spanClock } from "./clock.ts";
import type { Tracing } from "./contract.ts";
import { parentIn, traceparentOf, withTraceparent } from "./parent.ts";
import { attributesOf, RequestSpans } from "./request-trace.ts";
import { WakeSpans } from "./wake-spans.ts";

/** Spans that wait to be sent, some 1 KB each. Further ones are dropped. */
const MOST_QUEUED = 2048;
const MOST_AT_ONCE = 512;
/** How long a span waits for others, in milliseconds. */
const EVERY_MS = 1_000;
/** How long the collector may take to answer, with repetitions, in milliseconds. */
const ANSWER_MS = 5_000;
/** How long the end of the process may wait for the collector, in milliseconds. */
const CLOSE_MS = 2_000;

/** What became of a span: `dropped` when too many waited, `failed` when the collector did not take it. */
type SpanOutcome = "sent" | "dropped" | "failed";

interface OtlpOptions {
  url: string;
  /** The part of the requests without a `traceparent` that is traced, from 0 to 1. */
  ratio: number;
  /** What the spans say about where they come from. */
  resource: Record<string, string>;
  count(outcome: SpanOutcome, spans: number): void;
}

/** Starts the tracer. A collector that is away costs nothing but the spans. */
export function startTracing({ url, ratio, resource, count }: OtlpOptions): Tracing {
  const processor = boundedProcessor(new OTLPTraceExporter({ url, timeoutMillis: ANSWER_MS }), count);
  const provider = new TracerProvider({
    resource: resourceFromAttributes(resource).merge(detectResources({ detectors: [envDetector] })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer("hibernaut");
  return {
    wakes: new WakeSpans(tracer),
    begin(request, origin) {
      const parent = parentIn(request.fields);
      const above: Context = parent === undefined ? context.active() : trace.setSpanContext(context.active(), parent);
      const clock = spanClock();
      const span = tracer.startSpan("request", { kind: SpanKind.SERVER, startTime: clock() }, above);
      const hasParent = parent !== undefined;
      if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0) {
        span.setAttributes(attributesOf(request, origin));
        return new RequestSpans(tracer, span, { hasParent, clock });
      }
      // The app follows the decision, as OpenTelemetry has it.
      if (!hasParent) request.fields = withTraceparent(request.fields, traceparentOf(span.spanContext()), false);
      return undefined;
    },
    async close() {
      // A collector that is away is not waited for; what it did not take was counted.
      const ended = provider.shutdown().catch(() => {});
      await Promise.race([ended, delay(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

/** Queues spans and sends them in batches. Counts what becomes of each, which the SDK's own processor does not say. */
export function boundedProcessor(exporter: SpanExporter, count: OtlpOptions["count"]): SpanProcessor {
  let queued = 0;
  const counting: SpanExporter = {
    export(spans, done) {
      exporter.export(spans, (result) => {
        queued -= spans.length;
        count(result.code === ExportResultCode.SUCCESS ? "sent" : "failed", spans.length);
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counting,
    maxQueueSize: MOST_QUEUED,
    maxExportBatchSize: MOST_AT_ONCE,
    scheduledDelayMillis: EVERY_MS,
    // The exporter has its own limit, which ends first: a batch is counted once.
    exportTimeoutMillis: 2 * ANSWER_MS,
  });
  return {
    onStart() {},
    onEnd(span: ReadableSpan) {
      if (queued >= MOST_QUEUED) return count("dropped", 1);
      queued += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  };
}
