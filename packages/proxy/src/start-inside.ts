/**
 * Takes the connections of machines to apps of their network, at the apps' own addresses: they wake what sleeps there. Always in
 * the platform's process, because the host's rules lead these connections to ports that are chosen here.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ConnectionBudget } from "@hibernaut/connections";
import type { AppNetwork } from "@hibernaut/domain/app-network";
import { background } from "@hibernaut/lib/background";
import type { Way } from "@hibernaut/network";
import type { Settings } from "@hibernaut/settings";
import { lineWriter } from "@hibernaut/telemetry";
import { openAccessLog } from "./access-log.ts";
import { Trust } from "./http/trust.ts";
import type { LeaseBroker } from "./lease-broker.ts";
import { CLOSE_GRACE_MS, limitsOf, type StartProxyOptions } from "./start-proxy.ts";
import { ANY_PORT, type Place, TcpFronts } from "./tcp/fronts.ts";
import { numberOf } from "./tcp/ports.ts";

interface StartInsideOptions extends Pick<StartProxyOptions, "connect"> {
  settings: Settings;
  /** The host's address in the machines' network. */
  gateway: string;
  /** Returns the network that an app shares. Undefined if it shares none. */
  networkOf(app: string): AppNetwork | undefined;
  /** Leads connections to these addresses and ports to these ports of the gateway, and no others. */
  lead(ways: readonly Way[]): Promise<void>;
  connections: ConnectionBudget;
  log: { warn(fields: object, message: string): void };
}

/** All ports that change within this time are led to at once, in milliseconds: a project has several. */
const GATHER_MS = 20;
/** The rules of the host are tried again after this many milliseconds. */
const RETRY_MS = 5_000;

/** Serves until closed. */
export function startInside(options: StartInsideOptions): { close(): Promise<void> } {
  const { settings, gateway, networkOf, lead, connections, log } = options;
  const { patience, limits } = limitsOf(settings);
  const accessLog = openAccessLog(settings.logLevel, lineWriter(settings.logFormat));
  const { broker, close } = options.connect({
    ...{ maxHeld: settings.proxyMaxHeld, ...patience },
    onLeft: (machineId, ended) => fronts.forget(machineId, ended),
    onHostLeft: (host) => fronts.forgetHost(host),
    onPorts: () => changed(),
  });
  const fronts: TcpFronts = new TcpFronts({
    ...{ reusePort: false, leases: broker, connections, limits, log },
    isStranger: (client, app) => !mayReach(client, app),
    onAccess: (entry) => accessLog.write(entry),
    onOpened: () => changed(),
    // Nothing here has handlers for TLS, and no balancer is in front of it.
    balancers: new Trust([]),
    appFor: () => undefined,
    certificates: () => Promise.reject(new Error("No certificate is needed inside.")),
  });
  /** The host itself may, as it reaches machines anyway. */
  const mayReach = (client: string, app: string) => {
    const from = broker.appOfAddress(client);
    const network = networkOf(app)?.name;
    return from === undefined ? client === gateway : network !== undefined && networkOf(from)?.name === network;
  };
  const end = new AbortController();
  let isChanged = false;
  let work: Promise<void> | undefined;
  const changed = () => {
    isChanged = true;
    if (end.signal.aborted) return;
    work ??= arrange().finally(() => {
      work = undefined;
      if (isChanged) changed();
    });
    background(work, "leading machines to the apps of their networks");
  };
  /** Nothing leads to a port that is about to close: another program could have it next. */
  const arrange = async () => {
    await delay(GATHER_MS, undefined, { signal: end.signal }).catch(() => {});
    isChanged = false;
    if (end.signal.aborted) return;
    const places = placesOf(broker, gateway);
    try {
      await lead(waysOf(fronts, places, networkOf));
      fronts.update(places);
    } catch (error) {
      log.warn({ err: error }, "machines cannot be led to the apps of their networks; it is tried again");
      isChanged = true;
      await delay(RETRY_MS, undefined, { signal: end.signal }).catch(() => {});
    }
  };
  changed();
  return {
    async close() {
      end.abort();
      await work;
      await lead([]).catch((err: unknown) => log.warn({ err }, "machines are still led to ports that close now"));
      await fronts.close(CLOSE_GRACE_MS);
      close();
      accessLog.close();
    },
  };
}

/** Where connections are to be taken, each for a port of an app's own address. */
function placesOf(broker: LeaseBroker, gateway: string): Map<string, Place> {
  const all = [...broker.ownPorts()].flatMap(([app, ports]) =>
    [...ports].map((port): [string, Place] => [
      `${app} ${port}`,
      { host: gateway, listen: ANY_PORT, port, apps: new Map([[app, undefined]]) },
    ]),
  );
  return new Map(all);
}

/** The ways to those of the places that are open. */
function waysOf(
  fronts: TcpFronts,
  places: ReadonlyMap<string, Place>,
  networkOf: (app: string) => AppNetwork | undefined,
): Way[] {
  const networks = new Map<string, AppNetwork | undefined>();
  return [...fronts.opened].flatMap(([key, to]) => {
    const place = places.get(key);
    const [app = ""] = place?.apps.keys() ?? [];
    if (place === undefined) return [];
    if (!networks.has(app)) networks.set(app, networkOf(app));
    const network = networks.get(app);
    const { name = "", address } = network ?? {};
    return address === undefined ? [] : [{ network: name, address, port: numberOf(place.port), to }];
  });
}
