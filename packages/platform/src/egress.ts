/** What keeps machines to their rules for names, and where refusals are told: the name server, and the gate behind it. */
import { type NamePolicy, startDns } from "@hibernaut/dns";
import type { Egress } from "@hibernaut/domain/egress";
import { messageOf } from "@hibernaut/lib/text";
import type { RefusedConnection } from "@hibernaut/machines";
import type { NameRules } from "@hibernaut/network";
import { openGate, reachFrom } from "@hibernaut/proxy/outward";
import type { Settings } from "@hibernaut/settings";
import type { Store } from "@hibernaut/store";

interface EgressParts {
  /** The host's address in the machines' network. Absent in user mode. */
  gateway?: string | undefined;
  names?: NameRules | undefined;
  store: Pick<Store, "apps" | "machines">;
  settings: Pick<Settings, "blockedNetworks">;
  onRefused(machineId: string, refused: RefusedConnection): void;
  log: { warn(fields: object, message: string): void };
}

/** Starts both. Without a gate, what only it could let through is refused. */
export async function openNames(parts: EgressParts): Promise<{ close(): Promise<void> }> {
  const { gateway, names, store, settings, onRefused, log } = parts;
  if (gateway === undefined || names === undefined) return { close: async () => {} };
  const rulesOf = (machine: string): Egress | undefined => names.machineAt(machine)?.egress;
  const refused = (machine: string, what: RefusedConnection) => {
    const id = names.machineAt(machine)?.id;
    if (id !== undefined) onRefused(id, what);
  };
  const policy: NamePolicy = {
    rulesOf,
    learn: (machine, answers) => names.learn(machine, answers),
    onRefused: (machine, destination) => refused(machine, { destination, protocol: "dns" }),
  };
  const dns = await startDns(gateway, { store, policy }, log);
  const gate = await openGate({
    address: gateway,
    rulesOf,
    reach: reachFrom(settings.blockedNetworks),
    onRefused: (machine, { name = "no name", port }) => refused(machine, { destination: name, protocol: "tcp", port }),
  }).catch((error: unknown) => {
    log.warn(
      { gateway },
      `machines with rules for names reach none of them over HTTP and TLS: nothing can listen on ${gateway}: ${messageOf(error)}`,
    );
    return undefined;
  });
  if (gate !== undefined) await names.gate(gate.ports);
  return {
    async close() {
      await Promise.all([dns.close(), gate?.close()]);
    },
  };
}
