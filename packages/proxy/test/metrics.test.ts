/** The series of a proxy's metrics stay bounded, whatever clients ask for and however often apps come and go. */
import { noAmounts } from "@hibernaut/domain/usage";
import { usageMetrics } from "@hibernaut/metering";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import type { AccessEntry } from "../src/contract.ts";
import { MOST_GONE_APPS, proxyMetrics } from "../src/metrics.ts";

const entry = (more: Partial<AccessEntry>): AccessEntry => ({
  ...{ time: 0, requestId: "r", method: "GET", host: "x", target: "/", httpVersion: "1.1", clientAddress: "127.0.0.1" },
  ...{ status: 200, bytesIn: 0, bytesOut: 0, durationMs: 1, wake: undefined, machineId: "m", appName: "shop" },
  ...{ error: undefined, ...more },
});
const seriesOf = async (registry: Registry) =>
  (await registry.metrics()).split("\n").filter((line) => line.startsWith("hibernaut_")).length;

test("hostnames, paths and methods that clients make up make no series", async () => {
  const registry = new Registry();
  const metrics = proxyMetrics(registry, { held: () => new Map(), inFlight: () => 0, exists: () => true });
  const ask = (number: number) => {
    const made = { host: `h${number}.example`, target: `/${number}`, method: `M${number}` };
    metrics.onAccess(
      entry({ ...made, appName: undefined, status: 404, error: "unknown_host", requestId: `${number}` }),
    );
    metrics.onAccess(entry({ ...made, clientAddress: `10.0.0.${number}`, machineId: `m${number}` }));
  };
  ask(0);
  const before = await seriesOf(registry);
  for (let number = 1; number < 1000; number += 1) ask(number);
  expect(await seriesOf(registry)).toBe(before);
});

test("apps that are gone keep a limited number of series, the latest ones, and those that exist keep all", async () => {
  const registry = new Registry();
  const metrics = proxyMetrics(registry, {
    ...{ held: () => new Map(), inFlight: () => 0 },
    exists: (app) => app === "shop",
  });
  const used = (app: string) => {
    metrics.onAccess(entry({ appName: app }));
    metrics.onAccess(entry({ appName: app, status: 503, error: "host_full" }));
    metrics.onWake(app, { kind: "resume", durationMs: 5 });
  };
  used("shop");
  const most = async (round: string) => {
    for (let number = 0; number < 3 * MOST_GONE_APPS; number += 1) used(`${round}-${number}`);
    await registry.metrics(); // collects, and forgets
    return seriesOf(registry);
  };
  const first = await most("run");
  expect(await most("job")).toBe(first);
  const text = await registry.metrics();
  expect(text).toContain('hibernaut_proxy_requests_total{app="shop",status="2xx"} 1');
  expect(text).toContain(`app="job-${3 * MOST_GONE_APPS - 1}",status="2xx"`);
  expect(text, "no series of it is left").not.toContain('app="run-');
});

test("usage of apps that were destroyed is one series, and nothing of it is lost", async () => {
  const totals = new Map(
    ["shop", "run-1", "run-2"].map((app) => [app, { ...noAmounts(), running_ms: 60_000 }] as const),
  );
  const registry = new Registry();
  usageMetrics(registry, { totals: () => new Map(totals) }, () => [{ name: "shop" }]);
  const running = (await registry.metrics()).split("\n").filter((line) => line.includes('meter="running"'));
  expect(running).toEqual([
    'hibernaut_usage_machine_seconds_total{app="shop",meter="running"} 60',
    'hibernaut_usage_machine_seconds_total{app="(destroyed)",meter="running"} 120',
  ]);
});
