/** What keeps machines to their rules for names, and where refusals are told: the name server, and the gate behind it. */
import { type NamePolicy, startDns } from "@hibernaut/dns";
import { HibernautError } from "@hibernaut/domain/errors";
import { outsideOf } from "@hibernaut/lib/public-addresses";
import { messageOf } from "@hibernaut/lib/text";
import type { RefusedConnection } from "@hibernaut/machines";
import type { NameRules } from "@hibernaut/network";
import { type Credentials, type OutwardAuthority, openGate, reachFrom } from "@hibernaut/proxy/outward";
import { addedHeadersOf, unsealText, type Vault } from "@hibernaut/secrets";
import type { Settings } from "@hibernaut/settings";
import type { Store } from "@hibernaut/store";

interface EgressParts {
  /** The host's address in the machines' network. Absent in user mode. */
  gateway?: string | undefined;
  names?: NameRules | undefined;
  store: Pick<Store, "apps" | "machines">;
  settings: Pick<Settings, "blockedNetworks">;
  /** For connections that headers are added to, and to decrypt these. */
  authority: OutwardAuthority;
  vault: Pick<Vault, "unseal">;
  onRefused(machineId: string, refused: RefusedConnection): void;
  log: { warn(fields: object, message: string): void };
}

/** Starts both. What one of them would let through is refused where it cannot listen. */
export async function openNames(parts: EgressParts): Promise<{ close(): Promise<void> }> {
  const { gateway, names, store, settings, authority, vault, onRefused, log } = parts;
  if (gateway === undefined || names === undefined) return { close: async () => {} };
  const isOutside = outsideOf(settings.blockedNetworks);
  const policy: NamePolicy = {
    rulesOf: (machine) => names.machineAt(machine)?.egress,
    learn: (...answer) => names.learn(...answer),
    isOutside,
    onRefused(machine, destination) {
      const id = names.machineAt(machine)?.id;
      if (id !== undefined) onRefused(id, { destination, protocol: "dns" });
    },
  };
  const dns = await startDns(gateway, { store, policy, appAt: (address) => names.machineAt(address)?.app }, log);
  const gate = await openGate({
    address: gateway,
    machineAt: (address) => names.machineAt(address),
    reach: reachFrom({ mayLead: (address, port) => isOutside(address) && !names.isControl(address, port) }),
    injection: {
      authority,
      unseal(sealed, app) {
        try {
          return JSON.parse(unsealText(vault, addedHeadersOf(app), sealed)) as Credentials;
        } catch (cause) {
          const message = `The headers that are added to requests of app ${app} cannot be decrypted: they were set with another secrets.key. Put that one back, or let the programs of these sandboxes set network.rules again.`;
          throw new HibernautError("failed_precondition", message, { app_name: app }, { cause });
        }
      },
    },
    onRefused: (id, { name = "no name", port }) => onRefused(id, { destination: name, protocol: "tcp", port }),
  }).catch((error: unknown) => {
    log.warn(
      { gateway },
      `machines with rules for names reach none of them over HTTP and TLS: nothing can listen on ${gateway}: ${messageOf(error)}`,
    );
    return undefined;
  });
  names.onChanged((machine) => gate?.changed(machine));
  await names.judge({ gate: gate?.ports, dns: dns.isOpen });
  return {
    async close() {
      // Another program may get their ports.
      await names
        .judge({ dns: false })
        .catch((err: unknown) => log.warn({ err }, "the doors of machines with rules stay open"));
      await Promise.all([dns.close(), gate?.close()]);
    },
  };
}
