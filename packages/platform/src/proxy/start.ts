/** The proxy's side of the control plane: the hub, its socket, and by default a proxy in this very process. */
import type { Registry } from "prom-client";
import type { Resources } from "../machines/open.ts";
import type { Settings } from "../settings.ts";
import { urlsOf } from "./addresses.ts";
import { ProxyHub } from "./hub.ts";
import { hubSocketPath, listenForProxies } from "./hub-socket.ts";
import { connectInProcess } from "./in-process.ts";
import { type RunningProxy, serveProxy, type ServeProxyOptions } from "./serve.ts";

export interface StartProxyOptions {
  resources: Pick<Resources, "machines" | "hostnames" | "commands">;
  settings: Settings;
  registry: Registry;
  log: ServeProxyOptions["log"];
  /** Whether connections to a machine outlive its sleep. */
  connectionsSurvive: boolean;
  /** Whether machines may take requests. */
  checks: { isHealthy(id: string): boolean; onChange(listener: (id: string) => void): () => void };
}

/** Where apps answer; undefined when proxies run in processes of their own. */
export interface ProxySide {
  url: string | undefined;
  /** The addresses of an app that are known for sure; none when proxies run in processes of their own. */
  urlsOf(app: string): string[];
  /** Settles when no request is under way on the machine, or its time to drain is over. */
  finishRequests(machineId: string): Promise<void>;
  close(): Promise<void>;
}

/** Call it once machines are recovered. Rejects with `unavailable` when a port cannot be had. */
export async function startProxySide(options: StartProxyOptions): Promise<ProxySide> {
  const { resources, settings, registry, log, connectionsSurvive, checks } = options;
  const { machines, hostnames, commands } = resources;
  const hub = new ProxyHub({
    machines,
    hostnames,
    commands,
    suffixes: settings.proxySuffixes,
    idleCheckIntervalMs: settings.idleCheckIntervalS * 1000,
    log,
    connectionsSurvive,
    isHealthy: (id) => checks.isHealthy(id),
  });
  const stopListening = [
    hostnames.onChange(() => hub.hostnamesChanged()),
    checks.onChange((id) => hub.healthChanged(id)),
  ];
  const socket = await listenForProxies(hub, hubSocketPath(settings.dataDir));
  let proxy: RunningProxy | undefined;
  const close = async () => {
    await proxy?.close();
    for (const stop of stopListening) stop();
    await socket.close();
    await hub.close();
  };
  try {
    if (settings.proxy === "inside")
      proxy = await serveProxy({
        settings,
        registry,
        log,
        connect: (fleetOptions) => connectInProcess(hub, fleetOptions),
      });
    const finishRequests = (machineId: string) => hub.finished(machineId, settings.drainTimeoutMs);
    const fronts = proxy?.fronts ?? [];
    const appUrls = (app: string) => {
      const own = Object.entries(hostnames.owners()).filter(([, owner]) => owner === app);
      return urlsOf(app, { hostnames: own.map(([name]) => name), suffixes: settings.proxySuffixes, fronts });
    };
    return { url: proxy?.url, urlsOf: appUrls, finishRequests, close };
  } catch (error) {
    await close();
    throw error;
  }
}
