/** The proxy's side of the control plane: the coordinator, its socket, and by default a proxy in this very process. */
import type { Registry } from "prom-client";
import type { Resources } from "../machines/open.ts";
import type { Settings } from "../settings.ts";
import { urlsOf } from "./addresses.ts";
import { ProxyCoordinator } from "./proxy-coordinator.ts";
import { coordinatorSocketPath, listenForProxies } from "./coordinator-socket.ts";
import { connectInProcess } from "./connect-in-process.ts";
import { type RunningProxy, startProxy, type StartProxyOptions } from "./start-proxy.ts";

export interface StartCoordinatorOptions {
  resources: Pick<Resources, "machines" | "hostnames" | "commands">;
  settings: Settings;
  registry: Registry;
  log: StartProxyOptions["log"];
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
export async function startCoordinator(options: StartCoordinatorOptions): Promise<ProxySide> {
  const { resources, settings, registry, log, connectionsSurvive, checks } = options;
  const { machines, hostnames, commands } = resources;
  const coordinator = new ProxyCoordinator({
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
    hostnames.onChange(() => coordinator.hostnamesChanged()),
    checks.onChange((id) => coordinator.healthChanged(id)),
  ];
  const socket = await listenForProxies(coordinator, coordinatorSocketPath(settings.dataDir));
  let proxy: RunningProxy | undefined;
  const close = async () => {
    await proxy?.close();
    for (const stop of stopListening) stop();
    await socket.close();
    await coordinator.close();
  };
  try {
    if (settings.proxy === "inside")
      proxy = await startProxy({
        settings,
        registry,
        log,
        connect: (brokerOptions) => connectInProcess(coordinator, brokerOptions),
      });
    const finishRequests = (machineId: string) => coordinator.finished(machineId, settings.drainTimeoutMs);
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
