/** The proxy's side of the control plane: the hub, its socket, and by default a proxy in this very process. */
import type { Registry } from "prom-client";
import type { MachineService } from "../machines/service.ts";
import type { Settings } from "../settings.ts";
import { ProxyHub } from "./hub.ts";
import { hubSocketPath, listenForProxies } from "./hub-socket.ts";
import { connectInProcess } from "./in-process.ts";
import { type RunningProxy, serveProxy, type ServeProxyOptions } from "./serve.ts";

export interface StartProxyOptions {
  machines: MachineService;
  settings: Settings;
  registry: Registry;
  log: ServeProxyOptions["log"];
}

/** Where apps answer; undefined when proxies run in processes of their own. */
export interface ProxySide {
  url: string | undefined;
  close(): Promise<void>;
}

/** Call it once machines are recovered. Rejects with `unavailable` when a port cannot be had. */
export async function startProxySide({ machines, settings, registry, log }: StartProxyOptions): Promise<ProxySide> {
  const hub = new ProxyHub({
    machines,
    suffixes: settings.proxySuffixes,
    idleCheckIntervalMs: settings.idleCheckIntervalS * 1000,
    log,
  });
  const stopListening = machines.onHostnames(() => hub.hostnamesChanged());
  const socket = await listenForProxies(hub, hubSocketPath(settings.dataDir));
  let proxy: RunningProxy | undefined;
  const close = async () => {
    await proxy?.close();
    stopListening();
    await socket.close();
    await hub.close();
  };
  try {
    if (settings.proxy === "inside")
      proxy = await serveProxy({ settings, registry, log, connect: (options) => connectInProcess(hub, options) });
    return { url: proxy?.url, close };
  } catch (error) {
    await close();
    throw error;
  }
}
