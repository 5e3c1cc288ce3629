/** Traces of requests, as a collector gets them: through the real proxy, to apps on loopback. */
import { createServer as createHttp2Server } from "node:http2";
import { openTracing } from "@hibernaut/telemetry";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { Collector } from "../../platform/test/helpers/collector.ts";
import { CLOSE, headApp, httpApp, type RigOptions, rig, serve, statuses } from "./http/helpers.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const PARENT = `traceparent: 00-${TRACE}-${SPAN}-01\r\ntracestate: vendor=1\r\n`;
/** Only a fault reaches it. */
const PATIENT = { timeout: 20_000 };

async function traced(options: RigOptions, { sample = "1" } = {}) {
  const collector = await Collector.open();
  onTestFinished(() => collector.close());
  const registry = new Registry();
  const tracing = await openTracing({
    version: "1.2.3",
    settings: { tracesEndpoint: collector.url, tracesSample: sample, region: "local" },
    environment: {},
    registry,
    log: { info() {}, warn() {} },
  });
  if (tracing === undefined) throw new Error("traces are off");
  onTestFinished(() => tracing.close());
  const proxy = await rig({ ...options, tracing });
  const ended = (count = 1) => vi.waitFor(() => expect(collector.named("request")).toHaveLength(count), PATIENT);
  return { collector, registry, tracing, ended, ...proxy };
}

/** An app that keeps the heads of its requests. */
async function listening() {
  const heads: (Record<string, string | string[] | undefined> & { traceparent?: string })[] = [];
  const app = await httpApp((request, response) => {
    heads.push(request.headers);
    response.end("ok");
  });
  return { app, heads };
}

test("a request to a machine that runs: two spans, and the app's parent is the inner one", async () => {
  const { app, heads } = await listening();
  const { collector, ask, ended } = await traced({ app });
  await ask(`GET /cart?password=1 HTTP/1.1\r\n${PARENT}${CLOSE}`);
  await ended();
  const [request] = collector.named("request", TRACE);
  const [forward] = collector.named("forward", TRACE);
  expect(request).toMatchObject({
    parentSpanId: SPAN,
    kind: 2,
    status: 0,
    attributes: {
      "http.request.method": "GET",
      "http.response.status_code": 200,
      "url.path": "/cart",
      "url.scheme": "http",
      "server.address": "shop.test",
      "client.address": "127.0.0.1",
      "hibernaut.app": "shop",
      "hibernaut.machine": "m1",
      "hibernaut.wake": "running",
    },
    resource: { "service.name": "hibernaut", "hibernaut.region": "local" },
  });
  expect(JSON.stringify(request?.attributes)).not.toContain("password");
  expect(forward).toMatchObject({ parentSpanId: request?.spanId, kind: 3 });
  expect(heads).toMatchObject([{ traceparent: `00-${TRACE}-${forward?.spanId}-01`, tracestate: "vendor=1" }]);
  expect(collector.named("hold")).toEqual([]);
  expect(collector.requests[0]).toMatchObject({ path: "/v1/traces" });
});

test("a request without a parent begins a trace, and a parent that is not valid goes with its state", async () => {
  const { app, heads } = await listening();
  const { collector, ask, ended } = await traced({ app });
  await ask(`GET / HTTP/1.1\r\n${CLOSE}`);
  await ask(`GET / HTTP/1.1\r\ntraceparent: 00-nonsense\r\ntracestate: vendor=1\r\n${CLOSE}`);
  await ended(2);
  const roots = collector.named("request");
  expect(roots.map(({ parentSpanId }) => parentSpanId)).toEqual(["", ""]);
  expect(new Set(roots.map(({ traceId }) => traceId)).size).toBe(2);
  for (const [index, head] of heads.entries()) {
    expect(head.traceparent).toContain(roots[index]?.traceId);
    expect(head.tracestate).toBeUndefined();
  }
});

test("a request that is not sampled leaves no span: the app is told, and a client's own decision passes unchanged", async () => {
  const { app, heads } = await listening();
  const { collector, tracing, ask } = await traced({ app }, { sample: "0" });
  await ask(`GET / HTTP/1.1\r\n${CLOSE}`);
  await ask(`GET / HTTP/1.1\r\ntraceparent: 00-${TRACE}-${SPAN}-00\r\ntracestate: vendor=1\r\n${CLOSE}`);
  // The client decides: this one is traced although none would be by itself.
  await ask(`GET / HTTP/1.1\r\n${PARENT}${CLOSE}`);
  await tracing.close();
  expect(collector.named("request")).toMatchObject([{ traceId: TRACE }]);
  expect(heads[0]?.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  expect(heads[1]).toMatchObject({ traceparent: `00-${TRACE}-${SPAN}-00`, tracestate: "vendor=1" });
});

test("a request that waits for a machine has a span for that, and one for the connection", async () => {
  const { app } = await listening();
  const parents: (string | undefined)[] = [];
  const { collector, ask, ended } = await traced({
    app,
    async leaseFor(request, _signal, lease) {
      parents.push(request.trace?.wakeParent());
      return lease({ wake: { kind: "resume", durationMs: 40 } });
    },
  });
  await ask(`GET / HTTP/1.1\r\n${PARENT}${CLOSE}`);
  await ended();
  const [request] = collector.named("request", TRACE);
  const [hold] = collector.named("hold", TRACE);
  expect(hold).toMatchObject({
    parentSpanId: request?.spanId,
    attributes: { "hibernaut.wake": "resume", "hibernaut.machine": "m1", "hibernaut.app": "shop" },
  });
  expect(parents).toEqual([`00-${TRACE}-${hold?.spanId}-01`]);
  expect(collector.named("connect", TRACE)).toMatchObject([{ parentSpanId: request?.spanId, status: 0 }]);
  expect(collector.named("forward", TRACE)).toHaveLength(1);
});

test("a request that is refused says why, in every span that was open", async () => {
  const { collector, ask, ended } = await traced({
    leaseFor: (_request, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    limits: { findMachineMs: 50 },
  });
  expect(statuses(await ask(`GET / HTTP/1.1\r\n${PARENT}${CLOSE}`))).toEqual([504]);
  await ended();
  const failed = { status: 2, attributes: { "error.type": "wake_timeout" } };
  expect(collector.named("hold")).toMatchObject([failed]);
  expect(collector.named("request")).toMatchObject([failed]);
});

test("a machine that dies before it answers: the request is sent again, with a span for each attempt", async () => {
  let served = 0;
  const app = await headApp((socket) => {
    served += 1;
    if (served === 1) socket.destroy();
    else socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  });
  const { collector, ask, ended } = await traced({ app });
  expect(statuses(await ask(`GET / HTTP/1.1\r\n${PARENT}${CLOSE}`))).toEqual([200]);
  await ended();
  const [first, second] = collector.named("forward", TRACE);
  expect(first).toMatchObject({ status: 2, attributes: { "error.type": "upstream_closed" } });
  expect(second).toMatchObject({ status: 0, attributes: { "http.response.status_code": 200 } });
  expect(collector.named("request", TRACE)).toMatchObject([{ status: 0 }]);
});

test("a request that its app sends on has a span for each app, and the second one gets its own parent", async () => {
  const router = await httpApp(
    (_request, response) => void response.writeHead(307, { "fly-replay": "instance=anna" }).end(),
  );
  const { app: anna, heads } = await listening();
  const { collector, ask, ended } = await traced({
    leaseFor: async ({ to }, _signal, lease) =>
      lease({ machineId: to?.machineId ?? "router", port: to === undefined ? router.port : anna.port }),
    replayTo: () => ({ from: "shop", app: "shop", machineId: "anna" }),
  });
  expect(statuses(await ask(`GET / HTTP/1.1\r\n${PARENT}${CLOSE}`))).toEqual([200]);
  await ended();
  const [first, second] = collector.named("forward", TRACE);
  expect(first).toMatchObject({ status: 0, attributes: { "hibernaut.machine": "router" } });
  expect(second).toMatchObject({ status: 0, attributes: { "hibernaut.machine": "anna" } });
  expect(heads).toMatchObject([{ traceparent: `00-${TRACE}-${second?.spanId}-01` }]);
});

test("an app that speaks HTTP/2 gets the parent, too", async () => {
  const seen: (string | string[] | undefined)[] = [];
  const server = createHttp2Server((request, response) => {
    seen.push(request.headers.traceparent);
    response.end("ok");
  });
  const app = await serve(server, 0);
  const { collector, ask, ended } = await traced({
    app,
    leaseFor: async (_request, _signal, lease) => lease({ http2: true }),
  });
  expect(statuses(await ask(`GET / HTTP/1.1\r\n${PARENT}${CLOSE}`))).toEqual([200]);
  await ended();
  expect(seen).toEqual([`00-${TRACE}-${collector.named("forward", TRACE)[0]?.spanId}-01`]);
});

test("while traces are off, both fields pass as the client sent them", async () => {
  const { app, heads } = await listening();
  const { ask } = await rig({ app });
  await ask(`GET / HTTP/1.1\r\n${PARENT}${CLOSE}`);
  expect(heads).toMatchObject([{ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: "vendor=1" }]);
});

test("a collector that refuses costs nothing but the spans, and they are counted", async () => {
  const { app } = await listening();
  const { collector, registry, ask } = await traced({ app });
  collector.answer = 400;
  expect(statuses(await ask(`GET / HTTP/1.1\r\n${CLOSE}`))).toEqual([200]);
  const lost = 'hibernaut_trace_spans_total{outcome="failed"} 3';
  await vi.waitFor(async () => expect(await registry.metrics()).toContain(lost), PATIENT);
  collector.answer = 200;
  await ask(`GET / HTTP/1.1\r\n${CLOSE}`);
  const sent = 'hibernaut_trace_spans_total{outcome="sent"} 2';
  await vi.waitFor(async () => expect(await registry.metrics()).toContain(sent), PATIENT);
});
