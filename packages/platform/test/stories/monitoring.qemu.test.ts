/**
 * Someone on call looks: at metrics in a real Prometheus, and at the trace of a request that woke a real machine.
 *
 * @module-tag again
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { Collector, type SentSpan } from "../helpers/collector.ts";
import { startProxy } from "../helpers/outside-proxy.ts";
import { Prometheus } from "../helpers/prometheus.ts";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";
import { slowed } from "../helpers/slow.ts";
import { tempFolder } from "../helpers/temp.ts";
import { dashboard, expressionsOf } from "../metrics/dashboard.ts";
import { documented, MONITORING, parseScrape, surprises } from "../metrics/documents.ts";
import { flawsOf } from "../metrics/promtool.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const PATIENT = { timeout: slowed(60_000), interval: 200 };

let collector: Collector;
let id: string;
beforeAll(async () => {
  collector = await Collector.open();
});
afterAll(() => collector.close());
const place = Place.forTests(() => ({ HIBERNAUT_TRACES_ENDPOINT: collector.url }));
beforeAll(async () => {
  ({ machine_id: id } = await place.machine());
});

const traceparent = (traceId: string) => ({ traceparent: `00-${traceId}-${SPAN}-01`, tracestate: "vendor=1" });

/**
 * The spans of a trace, once its request has ended and its wake has come. `served` is the request at the proxy of the host
 * that has the machine, which is the client's unless that asked at another host.
 */
function traceOf(traceId: string) {
  const only = (name: string, { spanId }: Pick<SentSpan, "spanId">): SentSpan => {
    const [span, ...more] = collector.named(name, traceId).filter(({ parentSpanId }) => parentSpanId === spanId);
    if (span === undefined || more.length > 0) throw new Error(`not one span ${name} below ${spanId}`);
    return span;
  };
  const read = () => {
    const request = only("request", { spanId: SPAN });
    let served = request;
    for (let host = 1; host < place.served.apiUrls.length; host += 1) served = only("request", only("forward", served));
    const hold = only("hold", served);
    const wake = only("wake", hold);
    for (const step of ["room", "check", "qemu", "load", "attach", "consume", "awake"]) only(step, wake);
    return { request, served, hold, wake, forward: only("forward", served), step: (name: string) => only(name, wake) };
  };
  return vi.waitFor(read, PATIENT);
}

test("one trace: from the client through the proxy and the wake to the app", async () => {
  await place.suspend(id);
  const headers = traceparent(TRACE);
  const answer = await ask({ proxyUrl: place.proxyUrl, app: place.app }, "/head", { headers });
  expect([answer.status, wakeOf(answer).kind]).toEqual([200, "resume"]);

  const { request, served, hold, wake, forward, step } = await traceOf(TRACE);
  const about = { "hibernaut.machine": id, "hibernaut.app": place.app, "hibernaut.wake": "resume" };
  expect(request).toMatchObject({ status: 0, attributes: about });
  expect(served).toMatchObject({ status: 0, attributes: about });
  expect(hold).toMatchObject({ attributes: about });
  expect(wake).toMatchObject({ attributes: { ...about, "hibernaut.reason": "snapshot" } });

  // In time: the wake is within the wait, and the app had the request after it. Two clocks are off by less than 5 ms.
  const off = 5_000_000n;
  expect(served.began).toBeGreaterThanOrEqual(request.began - off);
  expect(hold.began).toBeGreaterThanOrEqual(served.began);
  expect(wake.began).toBeGreaterThanOrEqual(hold.began - off);
  expect(wake.ended).toBeLessThanOrEqual(hold.ended + off);
  expect(step("qemu").ended).toBeLessThanOrEqual(step("awake").began + off);
  expect(forward.began).toBeGreaterThanOrEqual(hold.ended);
  expect(served.ended).toBeGreaterThanOrEqual(forward.ended);
  expect(request.ended).toBeGreaterThanOrEqual(served.ended - off);

  // The app continues the client's trace, below the proxy's span.
  expect(answer.text).toContain(`traceparent: 00-${TRACE}-${forward.spanId}-01`);
  expect(answer.text).toContain("tracestate: vendor=1");
});

test("the same through a proxy in a process of its own: each process sends its spans, and they are one trace", {
  tags: "again",
}, async () => {
  const other = TRACE.replace("4bf9", "5bf9");
  const metrics = `127.0.0.1:${await freePort()}`;
  const proxyUrl = await startProxy(place, {
    HIBERNAUT_PROXY_METRICS_LISTEN: metrics,
    // The variables that all programs share.
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: "front",
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=night",
  });
  await place.suspend(id);
  const answer = await ask({ proxyUrl, app: place.app }, "/head", { headers: traceparent(other) });
  expect([answer.status, wakeOf(answer).kind]).toEqual([200, "resume"]);
  const { request, served, hold, wake, forward } = await traceOf(other);
  expect(request.resource["service.name"]).toBe("front");
  expect(hold.resource).toEqual(served.resource);
  expect(wake.resource["service.name"]).toBe("hibernaut");
  expect(answer.text).toContain(`traceparent: 00-${other}-${forward.spanId}-01`);
  expect(collector.requests.some(({ headers }) => headers["x-tenant"] === "night")).toBe(true);

  // Its own metrics, which the platform's are without.
  const scrape = parseScrape(await (await fetch(`http://${metrics}/metrics`)).text());
  expect(surprises(scrape)).toEqual([]);
  const own = [...documented().keys()].filter((name) =>
    /^(process_|hibernaut_(proxy|event_loop|trace|connections|unexpected_errors)(_|$))/.test(name),
  );
  expect([...scrape.types.keys()].sort()).toEqual(own.sort());
});

test("a real Prometheus reads the metrics, evaluates the alerts, and answers every question of the dashboard", {
  tags: "again",
}, async () => {
  const folder = await tempFolder("prometheus");
  const token = await place.token();
  const rules = join(MONITORING, "hibernaut.rules.yml");
  const prometheus = await Prometheus.start(folder, { apiUrls: place.served.apiUrls, token, rules });
  onTestFinished(() => prometheus.stop());
  const reads = async (expression: string, value: number) =>
    vi.waitFor(async () => expect(await prometheus.value(expression), expression).toBe(value), PATIENT);
  await reads('min(up{job="hibernaut"})', 1);
  const resumes = 'sum(hibernaut_starts_total{kind="resume", outcome="ok"})';
  const before = await prometheus.value(resumes);
  await place.suspend(id);
  await reads('sum(hibernaut_machines{state="suspended"})', 1);
  await reads("sum(hibernaut_snapshots)", 1);
  expect(await prometheus.value("sum(hibernaut_snapshot_bytes)")).toBeGreaterThan(1024 * 1024);
  expect((await ask({ proxyUrl: place.proxyUrl, app: place.app })).status).toBe(200);
  await reads(resumes, before + 1);
  await reads("sum(hibernaut_snapshots)", 0);
  expect(await prometheus.value('sum(hibernaut_start_step_seconds_sum{kind="resume", step="qemu"})')).toBeGreaterThan(
    0,
  );
  expect(await prometheus.value('sum(hibernaut_proxy_wake_seconds_count{kind="resume"})')).toBeGreaterThan(0);

  for (const { panel, expr } of expressionsOf(dashboard())) {
    const asked = expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(instance|app)\b/g, ".*");
    await expect(prometheus.query(asked), `${panel}: ${asked}`).resolves.toBeInstanceOf(Array);
  }

  // Nothing is wrong so far. Then the platform drains, which an alert is about.
  const pending = 'ALERTS{alertname="HibernautDrainForgotten"}';
  expect(await prometheus.query(pending)).toEqual([]);
  const headers = { authorization: `Bearer ${token}` };
  const drain = (method: string) => fetch(`${place.served.apiUrl}/v1/platform/drain`, { method, headers });
  await drain("POST");
  await reads(pending, 1);
  await drain("DELETE");
  await vi.waitFor(async () => expect(await prometheus.query(pending)).toEqual([]), PATIENT);

  // And the platform that stops is one that does not answer.
  await place.served.stop();
  await reads('max(up{job="hibernaut"})', 0);
  await reads('ALERTS{alertname="HibernautDown", alertstate="pending"}', 1);
  await place.served.start();
});

test("the real platform prints what is documented, and nothing else", async () => {
  await ask({ proxyUrl: place.proxyUrl, app: place.app });
  const text = await place.metrics();
  const scrape = parseScrape(text);
  expect(surprises(scrape)).toEqual([]);
  expect([...scrape.types.keys()].sort()).toEqual([...documented().keys()].sort());
  expect(flawsOf(text)).toEqual([]);
  expect(scrape.samples.find(({ name }) => name === "hibernaut_disk_available_bytes")?.value).toBeGreaterThan(0);
  expect(scrape.samples.find(({ name }) => name === "hibernaut_info")?.labels).toMatchObject({ version: "0.1.0" });
});
