/** Every metric of a platform on the fake hypervisor, in one registry, as `server.ts` puts them together. */
import { backupMetrics, certificateMetrics, warmMetrics, webhookMetrics } from "@hibernaut/api";
import type { TargetView } from "@hibernaut/backup";
import { EventStream } from "@hibernaut/events";
import { QMP_FAULTS } from "@hibernaut/hypervisor/qemu/qmp";
import { Usage, usageMetrics } from "@hibernaut/metering";
import { openTracing, processMetrics } from "@hibernaut/telemetry";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Registry } from "prom-client";
import { onTestFinished } from "vitest";
import { apiMetrics } from "../../../api/src/metrics.ts";
import { connectionMetrics } from "../../../connections/src/metrics.ts";
import { OUTCOMES, type Outcome } from "../../../events/src/webhooks/rules.ts";
import type { AccessEntry } from "../../../proxy/src/contract.ts";
import { proxyMetrics } from "../../../proxy/src/metrics.ts";
import { birthMetrics } from "../../src/metrics/births.ts";
import { operationMetrics } from "../../src/metrics/machines.ts";
import { platformMetrics, qmpMetrics } from "../../src/metrics/platform.ts";
import { budgetOf } from "../helpers/connections.ts";
import { type FakePlatform, newWorld, startPlatform, type World } from "../helpers/fake-world.ts";

export interface MetricsWorld {
  world: World;
  platform: FakePlatform;
  registry: Registry;
  stream: EventStream;
  proxy: ReturnType<typeof proxyMetrics>;
  /** What `/metrics` would return. */
  scrape(): Promise<string>;
}

/** Everything is gone when the test has finished. */
export async function metricsWorld(): Promise<MetricsWorld> {
  const world = await newWorld();
  const registry = new Registry();
  const watch = operationMetrics(registry);
  const platform = await startPlatform(world, { wrap: (deps) => ({ ...deps, watch }) });
  const stream = new EventStream(world.store.outbox);
  const endProcess = processMetrics(registry);
  connectionMetrics(registry, budgetOf());
  const log = { info() {}, warn() {} };
  // Nothing is sent, as nothing is traced.
  const settings = { tracesEndpoint: "http://127.0.0.1:9", tracesSample: "0", region: "local" };
  const tracing = await openTracing({ version: "1.2.3", settings, environment: {}, registry, log });
  onTestFinished(async () => {
    endProcess();
    await tracing?.close();
    stream.close();
    await platform.close();
    await world.dispose();
  });
  qmpMetrics(registry, QMP_FAULTS);
  platformMetrics(registry, {
    info: { version: "1", accelerator: "tcg", network: "user", hypervisor_version: "7.2" },
    dataDir: world.folder,
    machines: () => platform.machines.all().map(({ record }) => record),
    workload: () => platform.workload(),
    memory: () => 4 * 2 ** 30,
    draining: () => platform.drain.active,
    isHealthy: () => true,
    stream,
    droppedConnections: async () => 7,
  });
  warmMetrics(registry, platform.warm);
  birthMetrics(registry, platform.births);
  certificateMetrics(registry, { all: () => [], orders: { succeeded: 0, failed: 0 } as never });
  const attempts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 1])) as Record<Outcome, number>;
  const never = { overdue: false, lastSuccess: null, failures: 0, drills: [] } as Partial<TargetView> as TargetView;
  backupMetrics(registry, { list: async () => [{ ...never, name: "nas" }] });
  webhookMetrics(registry, { list: () => [], counts: { waiting: 0, attempts } });
  usageMetrics(registry, new Usage({ store: world.store.usage }), () => platform.apps.list());
  apiMetrics(platform.machines, registry).observe(
    { routeOptions: { url: "/v1/apps" }, method: "GET" } as FastifyRequest,
    { statusCode: 200, elapsedTime: 3 } as FastifyReply,
  );
  const names = () => new Set(platform.apps.list().map(({ name }) => name));
  const proxy = proxyMetrics(registry, {
    held: () => new Map([["shop", 0]]),
    inFlight: () => 0,
    exists: (app) => names().has(app),
  });
  return { world, platform, registry, stream, proxy, scrape: () => registry.metrics() };
}

/** A request that an app answered, as the proxy logs it. */
export function access(app: string | undefined, more: Partial<AccessEntry> = {}): AccessEntry {
  return {
    ...{ time: 0, requestId: "r", method: "GET", host: "x", target: "/", httpVersion: "1.1", clientAddress: "::1" },
    ...{ status: 200, bytesIn: 0, bytesOut: 0, durationMs: 1, wake: undefined, machineId: undefined, error: undefined },
    appName: app,
    ...more,
  };
}
