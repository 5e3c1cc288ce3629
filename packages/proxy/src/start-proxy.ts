/** Starts a proxy, in the platform's process or its own: its ports, the broker behind them, its log and its metrics. */
import { existsSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { certificatesFolder } from "@hibernaut/certs";
import { type ConnectionBudget, cannotListen } from "@hibernaut/connections";
import { ownPorts } from "@hibernaut/domain/own-ports";
import { findMachineMs } from "@hibernaut/domain/patience";
import type { Listen, Settings } from "@hibernaut/settings";
import { lineWriter, type Tracing } from "@hibernaut/telemetry";
import type { Registry } from "prom-client";
import { openAccessLog } from "./access-log.ts";
import type { Front } from "./addresses.ts";
import type { AccessEntry } from "./contract.ts";
import { LateCertificates } from "./http/late-certificates.ts";
import { DEFAULT_LIMITS, type Limits } from "./http/limits.ts";
import { createProxyServer, type ProxyServer, type TlsOptions } from "./http/server.ts";
import { Trust } from "./http/trust.ts";
import { OWN_WAKE_PAGE, readWakePage } from "./http/wake-page.ts";
import type { LeaseBroker, LeaseBrokerOptions } from "./lease-broker.ts";
import { proxyMetrics } from "./metrics.ts";
import { placesOf, TcpFronts } from "./tcp/fronts.ts";

export interface StartProxyOptions {
  settings: Settings;
  registry: Registry;
  /** The connections of this process. */
  connections: ConnectionBudget;
  /** Absent when traces are off. */
  tracing?: Tracing | undefined;
  log: { warn(fields: object, message: string): void };
  /** Creates the broker, connected to the coordinator in one way or the other. */
  connect(options: Omit<LeaseBrokerOptions, "link">): { broker: LeaseBroker; close(): void };
  /** Whether several processes may share the ports. */
  reusePort?: boolean;
}

export interface RunningProxy {
  /** For example `http://127.0.0.1:8080`. */
  url: string;
  /** The ports that the proxy listens on. */
  fronts: readonly Front[];
  close(): Promise<void>;
}

/** Returns what the settings say of the proxy's patience, and with it all of its limits. */
export function limitsOf(settings: Settings): {
  patience: { holdTimeoutMs: number; connectTimeoutMs: number };
  limits: Limits;
} {
  const patience = { holdTimeoutMs: settings.proxyHoldTimeoutMs, connectTimeoutMs: settings.proxyConnectTimeoutMs };
  const own = { findMachineMs: findMachineMs(patience), tunnelStallMs: settings.proxyStallTimeoutMs };
  return { patience, limits: { ...DEFAULT_LIMITS, ...own } };
}

/** How long open requests may take to end when the proxy closes: service managers usually wait at least 10 s. */
export const CLOSE_GRACE_MS = 8_000;

/** Serves until closed. Rejects with `unavailable` if a port cannot be opened. */
export async function startProxy(options: StartProxyOptions): Promise<RunningProxy> {
  const { settings, registry, connections, tracing, log, reusePort = false } = options;
  const { patience, limits } = limitsOf(settings);
  const { proxyWakePage } = settings;
  const wakePage =
    proxyWakePage === undefined ? OWN_WAKE_PAGE : await readWakePage(proxyWakePage, "HIBERNAUT_PROXY_WAKE_PAGE");
  const servers: ProxyServer[] = [];
  const fronts: Front[] = [];
  /** Undefined until the proxy's own ports are open, which matter more. */
  let tcp: TcpFronts | undefined;
  /** The ports that it has, or would have if no other program had them. */
  let wanted: readonly number[] = [];
  const { broker, close } = options.connect({
    maxHeld: settings.proxyMaxHeld,
    ...patience,
    onLeft: (machineId, ended) => {
      for (const server of servers) server.forget(machineId, ended);
      tcp?.forget(machineId, ended);
    },
    onHostLeft: (host) => {
      for (const server of servers) server.forgetHost(host);
      tcp?.forgetHost(host);
    },
    onForwarded: (host) => metrics.onForwarded(host),
    onPorts: (isNew) => openTcpPorts(isNew),
    onWake: (app, wake) => metrics.onWake(app, wake),
    tlsPort: () => fronts.find(({ scheme }) => scheme === "https")?.port,
  });
  const metrics = proxyMetrics(registry, {
    held: () => broker.held(),
    exists: (app) => broker.hasApp(app),
    inFlight: () => servers.reduce((sum, server) => sum + server.stats().requests, 0),
  });
  /** At the address that was set, and for the machines at the host's address in their network. */
  const openTcpPorts = (isNew?: (port: number) => boolean) => {
    const inside = broker.gateway === undefined ? [] : [broker.gateway];
    const everywhere = ["0.0.0.0", "::"].includes(settings.proxyTcpListen);
    // With its ports shared among processes, the kernel would give some of the requests to a machine.
    const own = new Set([...ownPorts(settings), ...fronts.map(({ port }) => port)]);
    const owners = new Map([...broker.tcpPorts()].filter(([port]) => !own.has(port)));
    tcp?.update(placesOf(owners, [settings.proxyTcpListen, ...(everywhere ? [] : inside)]), isNew);
    wanted = tcp === undefined ? [] : [...owners.keys()];
    tellPorts();
  };
  const tellPorts = () => {
    const closed = tcp?.closed ?? new Map<number, string>();
    broker.tellClosed(closed);
    // Another program has what is closed.
    broker.tellTaken([...fronts.map(({ port }) => port), ...wanted.filter((port) => !closed.has(port))]);
  };
  const accessLog = openAccessLog(settings.logLevel, lineWriter(settings.logFormat));
  const onAccess = (entry: AccessEntry) => {
    metrics.onAccess(entry);
    accessLog.write(entry);
  };
  const onFault = (error: unknown) => log.warn({ err: error }, "a fault in the proxy");
  const start = async (listen: Listen, tls?: TlsOptions): Promise<AddressInfo> => {
    const trustedProxies = settings.proxyTrusted;
    const server = createProxyServer({
      ...{ leases: broker, connections, onAccess, onFault, trustedProxies, limits },
      ...{ hstsS: settings.proxyHstsS, wakePage, balancers: settings.proxyProtocolFrom },
      ...(tls && { tls }),
      tracing,
    });
    servers.push(server);
    const bound = await server.listen({ ...listen, reusePort }).catch(async (error: unknown) => {
      const setting = tls === undefined ? "HIBERNAUT_PROXY_LISTEN" : "HIBERNAUT_PROXY_TLS_LISTEN";
      throw await cannotListen("The proxy", listen, setting, error);
    });
    const scheme = tls === undefined ? "http" : "https";
    fronts.push({ scheme, address: bound.address, port: bound.port, covers: (name) => server.covers(name) });
    return bound;
  };
  const folders = { folder: settings.proxyTlsFolder, managed: certificatesFolder(settings.dataDir) };
  const late = new LateCertificates(folders, onFault);
  /** Those that HTTPS serves. Without HTTPS, they are read when a TCP connection needs them first. */
  const certificates = () => {
    const shown = servers.find((server) => server.certificates !== undefined)?.certificates;
    return shown === undefined ? late.get() : Promise.resolve(shown);
  };
  const end = async () => {
    await Promise.all([...servers, ...(tcp === undefined ? [] : [tcp])].map((server) => server.close(CLOSE_GRACE_MS)));
    late.close();
    close();
    accessLog.close();
  };
  try {
    const address = await start(settings.proxyListen);
    if (settings.proxyTlsListen) {
      await start(settings.proxyTlsListen, folders);
      if (!existsSync(folders.folder))
        log.warn(
          { folder: folders.folder },
          "HIBERNAUT_PROXY_TLS_FOLDER does not exist; only managed certificates are served",
        );
    }
    const host = settings.proxyTcpListen;
    if (host !== "off")
      tcp = new TcpFronts({
        ...{ reusePort, leases: broker, connections, limits, onAccess, certificates, log },
        isStranger: (client, app) => (broker.appOfAddress(client) ?? app) !== app,
        onClosed: tellPorts,
        balancers: new Trust(settings.proxyProtocolFrom),
        appFor: (hostname) => broker.appFor(hostname),
      });
    openTcpPorts();
    return { url: `http://${hostOf(address)}:${address.port}`, fronts, close: end };
  } catch (error) {
    await end();
    throw error;
  }
}

function hostOf({ address, family }: AddressInfo): string {
  return family === "IPv6" ? `[${address}]` : address;
}
