/**
 * Takes the connections of machines to apps of their network, at the apps' own addresses: they wake what sleeps there. Always in
 * the platform's process, because the host's rules lead these connections to ports that are chosen here.
 */
import type { ConnectionBudget } from "@hibernaut/connections";
import type { AppNetwork } from "@hibernaut/domain/app-network";
import { background } from "@hibernaut/lib/background";
import type { Way } from "@hibernaut/network";
import type { Settings } from "@hibernaut/settings";
import { lineWriter } from "@hibernaut/telemetry";
import { openAccessLog } from "./access-log.ts";
import { Trust } from "./http/trust.ts";
import { CLOSE_GRACE_MS, limitsOf, type StartProxyOptions } from "./start-proxy.ts";
import { type Place, TcpFronts } from "./tcp/fronts.ts";
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

/** Serves until closed. */
export function startInside(options: StartInsideOptions): { close(): Promise<void> } {
  const { settings, gateway, networkOf, connections, log } = options;
  const { patience, limits } = limitsOf(settings);
  const accessLog = openAccessLog(settings.logLevel, lineWriter(settings.logFormat));
  const { broker, close } = options.connect({
    ...{ maxHeld: settings.proxyMaxHeld, ...patience },
    onLeft: (machineId, ended) => fronts.forget(machineId, ended),
    onHostLeft: (host) => fronts.forgetHost(host),
    onPorts: (isNew) => update(isNew),
  });
  const lead = latestOf(options.lead, (err) =>
    log.warn({ err }, "machines cannot be led to the apps of their networks; it is tried again with the next change"),
  );
  const fronts = new TcpFronts({
    ...{ reusePort: false, leases: broker, connections, limits, log },
    // A machine that is gone from the table has no connections either: what is left is the host.
    isStranger(client, app) {
      const from = broker.appOfAddress(client);
      return from !== undefined && networkOf(from)?.name !== networkOf(app)?.name;
    },
    onAccess: (entry) => accessLog.write(entry),
    onOpened: () => lead(ways()),
    // Nothing here has handlers for TLS, and no balancer is in front of it.
    balancers: new Trust([]),
    appFor: () => undefined,
    certificates: () => Promise.reject(new Error("No certificate is needed inside.")),
  });
  const places = () => {
    const all = [...broker.ownPorts()].flatMap(([app, ports]) =>
      [...ports].map((port): [string, Place] => [
        `${app} ${port}`,
        { host: gateway, listen: 0, port, apps: new Map([[app, undefined]]) },
      ]),
    );
    return new Map(all);
  };
  const ways = (): Way[] =>
    [...fronts.opened].flatMap(([key, to]) => {
      const [app = "", port] = key.split(" ");
      const address = networkOf(app)?.address;
      return address === undefined ? [] : [{ address, port: numberOf(Number(port)), to }];
    });
  const update = (isNew?: (port: number) => boolean) => {
    fronts.update(places(), isNew);
    lead(ways());
  };
  update();
  return {
    async close() {
      await fronts.close(CLOSE_GRACE_MS);
      close();
      accessLog.close();
    },
  };
}

/** Returns a function that does some work with what it was called with last, one after the other, and skips what it already did. */
function latestOf<T>(work: (value: T) => Promise<void>, onFault: (error: unknown) => void): (value: T) => void {
  let wanted: T | undefined;
  let done = "[]";
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    for (let value = wanted; value !== undefined; value = wanted) {
      wanted = undefined;
      const text = JSON.stringify(value);
      if (text === done) continue;
      try {
        await work(value);
        done = text;
      } catch (error) {
        done = "";
        onFault(error);
      }
    }
    isRunning = false;
  };
  return (value) => {
    wanted = value;
    if (!isRunning) background(run(), "leading machines to the apps of their networks");
  };
}
