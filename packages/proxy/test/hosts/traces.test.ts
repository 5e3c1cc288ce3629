/** Traces of requests that come to one host's proxy, for machines of another host. */
import { expect, onTestFinished, test } from "vitest";
import { Collector } from "../../../platform/test/helpers/collector.ts";
import { startTracing } from "../../../telemetry/src/tracing/otlp.ts";
import { startHosts, type TestHost } from "./hosts-world.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const CLIENT = { headers: { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: "vendor=1" } };

interface Heard {
  traceparent?: string;
  tracestate?: string;
}

/** Two hosts, of which some are traced, and a machine of the second that answers with the trace that it got. */
async function tracedHosts(...names: ("a" | "b")[]) {
  const collector = await Collector.open();
  onTestFinished(() => collector.close());
  const [a, b] = await startHosts("a", "b");
  const all = { a, b };
  const tracings = await Promise.all(
    names.map(async (name) => {
      const url = `${collector.url}/v1/traces`;
      const tracing = startTracing({ url, ratio: 1, resource: { "service.name": name }, count() {} });
      onTestFinished(() => tracing.close());
      await all[name].restartTraced(tracing);
      return tracing;
    }),
  );
  const { id } = await b.machine((request, response) => {
    const { traceparent, tracestate } = request.headers;
    response.end(JSON.stringify({ traceparent, tracestate }));
  });
  await a.ready();
  const ask = async (host: TestHost) => JSON.parse((await host.ask("/", CLIENT)).body) as Heard;
  /** The spans with this name of one host. */
  const spans = (name: string, host: string) =>
    collector.named(name, TRACE).filter(({ resource }) => resource["service.name"] === host);
  const sent = () => Promise.all(tracings.map((tracing) => tracing.close()));
  return { a, b, id, ask, spans, sent, collector };
}

test("one trace has the spans of both hosts: the wait for the machine is on its own one", async () => {
  const { a, b, id, ask, spans, sent } = await tracedHosts("a", "b");
  await b.suspend(id);
  await a.hears(id, "suspended");
  const heard = await ask(a);
  await sent();

  const about = { "hibernaut.machine": id, "hibernaut.wake": "resume" };
  const [first] = spans("request", "a");
  expect(first).toMatchObject({ parentSpanId: SPAN, attributes: { ...about, "hibernaut.host": "b" } });
  expect(spans("hold", "a")).toEqual([]);
  const [between] = spans("forward", "a");
  expect(between).toMatchObject({ parentSpanId: first?.spanId, attributes: { "hibernaut.host": "b" } });
  const [second] = spans("request", "b");
  expect(second).toMatchObject({ parentSpanId: between?.spanId, attributes: about });
  expect(second?.attributes["hibernaut.request_id"]).toBe(first?.attributes["hibernaut.request_id"]);
  expect(second?.attributes).not.toHaveProperty("hibernaut.host");
  expect(spans("hold", "b")).toMatchObject([{ parentSpanId: second?.spanId, attributes: about }]);
  const [last] = spans("forward", "b");
  expect(last).toMatchObject({ parentSpanId: second?.spanId, attributes: { "hibernaut.machine": id } });
  expect(heard).toEqual({ traceparent: `00-${TRACE}-${last?.spanId}-01`, tracestate: "vendor=1" });
});

test("a host without traces passes on what it got: the trace has the spans of the other one", async () => {
  const first = await tracedHosts("a");
  const ofFirst = await first.ask(first.a);
  await first.sent();
  const [forward] = first.spans("forward", "a");
  expect(ofFirst).toEqual({ traceparent: `00-${TRACE}-${forward?.spanId}-01`, tracestate: "vendor=1" });
  expect(first.collector.named("request")).toHaveLength(1);

  const second = await tracedHosts("b");
  const ofSecond = await second.ask(second.a);
  await second.sent();
  const [request] = second.spans("request", "b");
  expect(request).toMatchObject({ parentSpanId: SPAN });
  const [last] = second.spans("forward", "b");
  expect(ofSecond).toEqual({ traceparent: `00-${TRACE}-${last?.spanId}-01`, tracestate: "vendor=1" });
});
