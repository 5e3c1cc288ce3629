/** Starts the platform's side of the proxies: the coordinator, its socket, and by default a proxy in this process. */
import type { TLSSocket } from "node:tls";
import type { Challenges } from "@hibernaut/certs";
import type { CheckRunner } from "@hibernaut/checks";
import type { Resources } from "@hibernaut/machines";
import type { Way } from "@hibernaut/network";
import type { Traffic } from "@hibernaut/store";
import type { AppAddresses } from "./addresses.ts";
import { connectInProcess } from "./connect-in-process.ts";
import type { ConnectedProxies } from "./connected-proxies.ts";
import { coordinatorSocketPath, listenForProxies } from "./coordinator-socket.ts";
import type { HostProxies, HostProxiesOptions } from "./hosts/open.ts";
import { ProxyCoordinator } from "./proxy-coordinator.ts";
import { startInside } from "./start-inside.ts";
import { type RunningProxy, type StartProxyOptions, startProxy } from "./start-proxy.ts";

interface StartCoordinatorOptions
  extends Pick<StartProxyOptions, "settings" | "connections" | "registry" | "tracing" | "log"> {
  resources: Pick<Resources, "apps" | "machines" | "hostnames" | "commands" | "drain">;
  /** Decides whether machines may take requests. Already running, so that no machine is announced before its checks. */
  checks: Pick<CheckRunner, "isHealthy" | "subscribe">;
  proxies: ConnectedProxies;
  /** Told where a proxy in this process listens. */
  addresses: AppAddresses;
  /** The host's address in the machines' network, if they have one. */
  gateway: string | undefined;
  /** Leads machines to apps' own addresses, where they have a network. */
  lead(ways: readonly Way[]): Promise<void>;
  /** Told all ports at which proxies take connections of visitors. */
  onTaken?(ports: readonly number[]): void;
  /** The challenges of certificate authorities, which proxies answer. */
  challenges: Challenges;
  /** Whether connections to a machine outlive its sleep. */
  connectionsSurvive: boolean;
  /** Absent on a host that is in no cluster. */
  cluster?: HostProxiesOptions["cluster"] | undefined;
  /** Told what proxies have forwarded. */
  onTraffic(machineId: string, traffic: Traffic): void;
}

/** The platform's side of the proxies, as the rest of the platform sees it. */
export interface RunningCoordinator extends Pick<ProxyCoordinator, "activity" | "closedPorts"> {
  /** Serve connections of another host's proxy, which has shown its certificate: for HTTP, and for one TCP connection. */
  acceptHost(socket: TLSSocket): void;
  acceptTcp(socket: TLSSocket): void;
  close(): Promise<void>;
}

/** Loaded in a cluster only. */
async function openHostProxies(options: HostProxiesOptions): Promise<HostProxies> {
  const { HostProxies } = await import("./hosts/open.ts");
  return new HostProxies(options);
}

/** Call it once machines are recovered. Rejects with `unavailable` if a port cannot be opened. */
export async function startCoordinator(options: StartCoordinatorOptions): Promise<RunningCoordinator> {
  const { resources, checks, proxies, addresses, challenges, settings, registry, tracing, log } = options;
  const { connectionsSurvive, gateway, lead, onTraffic, onTaken, cluster, connections } = options;
  /** Most hosts have no app that shares a network. */
  const networkOf = (app: string) => {
    const network = resources.apps.networkOf(app);
    if (network !== undefined) beginInside();
    return network;
  };
  let beginInside = () => {};
  const hosts = cluster && (await openHostProxies({ cluster, settings, machines: connections.machines, tracing, log }));
  const coordinator = new ProxyCoordinator({
    ...resources,
    proxies,
    suffixes: settings.proxySuffixes,
    idleCheckIntervalMs: settings.idleCheckIntervalS * 1000,
    ...{ gateway, networkOf },
    connectionsSurvive,
    onTraffic,
    onTaken,
    isHealthy: (id) => checks.isHealthy(id),
    isDraining: () => resources.drain.active,
    challenges,
    traces: tracing?.wakes,
    remote: hosts?.remote,
    log,
  });
  const unsubscribes = [
    resources.hostnames.subscribe(() => coordinator.hostnamesChanged()),
    challenges.subscribe(() => coordinator.challengesChanged()),
    checks.subscribe((id) => coordinator.healthChanged(id)),
    resources.drain.subscribe((draining) => coordinator.drainChanged(draining)),
  ];
  const socket = await listenForProxies(coordinator, coordinatorSocketPath(settings.dataDir));
  let proxy: RunningProxy | undefined;
  let inside: { close(): Promise<void> } | undefined;
  let isClosing = false;
  let isBegun = false;
  const connect = (brokerOptions: Parameters<typeof connectInProcess>[1]) =>
    connectInProcess(coordinator, { ...brokerOptions, ...(hosts && { reach: hosts.reach }) });
  const close = async () => {
    isClosing = true;
    await coordinator.rest();
    await Promise.all([proxy?.close(), inside?.close()]);
    for (const unsubscribe of unsubscribes) unsubscribe();
    await socket.close();
    await hosts?.close();
    await coordinator.close();
  };
  try {
    hosts?.start(coordinator);
    beginInside = () => {
      if (gateway === undefined || isBegun || isClosing) return;
      isBegun = true;
      inside = startInside({
        ...{ settings, gateway, lead, connections, log },
        networkOf: (app) => resources.apps.networkOf(app),
        connect: (brokerOptions) => connect({ ...brokerOptions, forVisitors: false }),
      });
    };
    if (resources.apps.list().some(({ network }) => network !== undefined)) beginInside();
    if (settings.proxy === "inside") {
      proxy = await startProxy({ settings, registry, connections, tracing, log, connect });
      addresses.opened(proxy);
    }
    return {
      close,
      activity: (id) => coordinator.activity(id),
      closedPorts: (app) => coordinator.closedPorts(app),
      acceptHost: (peer) => (hosts === undefined ? peer.destroy() : hosts.accept(peer, "http")),
      acceptTcp: (peer) => (hosts === undefined ? peer.destroy() : hosts.accept(peer, "tcp")),
    };
  } catch (error) {
    await close();
    throw error;
  }
}
