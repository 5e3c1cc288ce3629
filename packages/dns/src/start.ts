/** Starts the name server for the platform. */
import { DNS_PORT } from "@hibernaut/domain/own-ports";
import { messageOf } from "@hibernaut/lib/text";
import type { Store } from "@hibernaut/store";
import { NetworkNames } from "./neighbours.ts";
import type { NamePolicy } from "./policy.ts";
import { DnsServer } from "./server.ts";
import type { Zone } from "./zone.ts";

export type { NamePolicy };

interface StartDnsOptions {
  store: Pick<Store, "apps" | "machines">;
  /** Returns the app of the machine that has an address. */
  appAt(address: string): string | undefined;
  policy?: NamePolicy;
}

/**
 * Starts the name server on the host's address in the machines' network, if there is one. When another program has the
 * port, the platform starts anyway and logs a warning: machines then cannot resolve names.
 */
export async function startDns(
  gateway: string | undefined,
  { store, appAt, policy }: StartDnsOptions,
  log: { warn(fields: object, message: string): void },
): Promise<{ isOpen: boolean; close(): Promise<void> }> {
  if (gateway === undefined) return { isOpen: false, close: async () => {} };
  const names = new NetworkNames({ store, appAt });
  const zone: Zone = {
    gateway,
    running(app) {
      if (store.apps.get(app) === undefined) return undefined;
      return store.machines.list(app).filter(({ state, pooled }) => state === "running" && pooled !== true);
    },
    hasPorts: (app) =>
      store.apps.get(app) !== undefined &&
      store.machines.list(app).some(({ config }) => config.services?.some(({ ports = [] }) => ports.length > 0)),
    neighboursOf: (asker) => names.of(asker),
  };
  try {
    const server = await DnsServer.open({ address: gateway, port: DNS_PORT, zone, ...(policy && { policy }) });
    return { isOpen: true, close: () => server.close() };
  } catch (error) {
    log.warn(
      { gateway },
      `names do not resolve inside machines: the name server cannot listen on ${gateway}, port ${DNS_PORT}: ${messageOf(error)}. Configure the name server that listens on all addresses to leave this one out.`,
    );
    return { isOpen: false, close: async () => {} };
  }
}
