/** Runs `hibernaut proxy`: a proxy in its own process, next to a platform on the same host. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { CLUSTER_FOLDER } from "@hibernaut/cluster/keys";
import { type ConnectionBudget, cannotListen, guardHttp, openConnections } from "@hibernaut/connections";
import { isThere } from "@hibernaut/lib/absence";
import { aborted } from "@hibernaut/lib/async";
import type { Listen, Settings } from "@hibernaut/settings";
import { unknownSettings } from "@hibernaut/settings/unknown-settings";
import { installLastResort, openLog, openTracing, processMetrics } from "@hibernaut/telemetry";
import { Registry } from "prom-client";
import { connectOverSocket } from "./connect-over-socket.ts";
import { coordinatorSocketPath } from "./coordinator-socket.ts";
import { startProxy } from "./start-proxy.ts";

interface ProxyProcessOptions {
  /** Of Hibernaut, for traces. */
  version: string;
  settings: Settings;
  signal: AbortSignal;
  onReady?(ready: { url: string }): void;
}

/** Runs until the signal is aborted. The platform may stop and start in the meantime. */
export async function runProxyProcess({ version, settings, signal, onReady }: ProxyProcessOptions): Promise<void> {
  const log = openLog(settings.logLevel, settings.logFormat);
  installLastResort(log);
  for (const note of unknownSettings(process.env)) log.warn({}, note);
  const registry = new Registry();
  const endMetrics = processMetrics(registry);
  const connections = openConnections(settings, registry);
  const tracing = await openTracing({ version, settings, environment: process.env, registry, log });
  const hosts = await openReachOf(settings.dataDir, log);
  const proxy = await startProxy({
    settings,
    registry,
    connections,
    tracing,
    log,
    reusePort: true,
    connect: (options) =>
      connectOverSocket(coordinatorSocketPath(settings.dataDir), {
        ...options,
        ...(hosts && { reach: hosts.reach }),
        onConnection: (connected) =>
          log.info({ connected }, connected ? "connected to the platform" : "the platform is away"),
      }),
  });
  let metrics: Server | undefined;
  try {
    metrics = settings.proxyMetricsListen && (await serveMetrics(registry, connections, settings.proxyMetricsListen));
    onReady?.({ url: proxy.url });
    await aborted(signal);
  } finally {
    metrics?.close();
    hosts?.close();
    endMetrics();
    await proxy.close();
    await tracing?.close();
  }
}

/** How other hosts of the cluster are reached. Undefined, and nothing of clusters is loaded, on a host alone. */
async function openReachOf(dataDir: string, log: { warn(fields: object, message: string): void }) {
  if (!(await isThere(join(dataDir, CLUSTER_FOLDER)))) return undefined;
  const { openReach } = await import("./hosts/reach.ts");
  return openReach({ dataDir, log });
}

/** Rejects with `unavailable` if the port cannot be opened. */
async function serveMetrics(registry: Registry, connections: ConnectionBudget, listen: Listen): Promise<Server> {
  const server = createServer((_request, response) => {
    registry.metrics().then(
      (text) => response.setHeader("content-type", registry.contentType).end(text),
      () => response.writeHead(500).end(),
    );
  });
  guardHttp(server, connections, false);
  server.listen(listen.port, listen.host);
  await once(server, "listening").catch(async (error: unknown) => {
    throw await cannotListen("The proxy's metrics", listen, "HIBERNAUT_PROXY_METRICS_LISTEN", error);
  });
  return server;
}
