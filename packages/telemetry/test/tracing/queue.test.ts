/** What waits for a collector is bounded, and a collector that is away holds nothing up. */
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import { expect, onTestFinished, test } from "vitest";
import { Collector } from "../../../platform/test/helpers/collector.ts";
import { boundedProcessor, startTracing } from "../../src/tracing/otlp.ts";

/** As in otlp.ts. */
const MOST_QUEUED = 2048;

test("spans beyond the limit are dropped and counted, and what the collector took leaves room for others", async () => {
  const counts = { sent: 0, dropped: 0, failed: 0 };
  const waiting: { spans: number; done: () => void }[] = [];
  const exporter: SpanExporter = {
    export: (spans, done) => void waiting.push({ spans: spans.length, done: () => done({ code: 0 }) }),
    shutdown: async () => {},
  };
  const processor = boundedProcessor(exporter, (outcome, spans) => (counts[outcome] += spans));
  const span = { spanContext: () => ({ traceFlags: 1 }), resource: {} } as unknown as ReadableSpan;
  for (let count = 0; count < MOST_QUEUED + 1000; count += 1) processor.onEnd(span);
  expect(counts).toEqual({ sent: 0, dropped: 1000, failed: 0 });
  // One batch is with the exporter, and does not come back.
  expect(waiting).toHaveLength(1);
  waiting[0]?.done();
  processor.onEnd(span);
  expect(counts).toMatchObject({ sent: waiting[0]?.spans, dropped: 1000 });
  const ended = processor.shutdown();
  while (counts.sent < MOST_QUEUED + 1) {
    for (const { done } of waiting.splice(1)) done();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  expect(counts).toEqual({ sent: MOST_QUEUED + 1, dropped: 1000, failed: 0 });
});

test("the end does not wait for a collector that says nothing", async () => {
  const collector = await Collector.open();
  onTestFinished(() => collector.close());
  collector.answer = "silence";
  const tracing = startTracing({ url: `${collector.url}/v1/traces`, ratio: 1, resource: {}, count() {} });
  const origin = { requestId: "r", clientAddress: "127.0.0.1", secure: false };
  const request = { method: "GET", target: "/", host: "shop.test", httpVersion: "1.1", fields: [] };
  tracing.begin(request, origin)?.ends({ status: 200, error: undefined, appName: "shop" });
  await tracing.close();
  expect(collector.requests).toHaveLength(1);
});
