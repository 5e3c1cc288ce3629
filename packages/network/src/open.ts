/**
 * Opens the network of a data directory: a bridge where the host can have one, otherwise QEMU's user-mode network. Once
 * there are machines, mode and subnet belong to them, and only a setting changes either.
 */
import { HibernautError } from "@hibernaut/domain/errors";
import { formatSubnet } from "@hibernaut/lib/ipv4";
import { messageOf } from "@hibernaut/lib/text";
import type { Settings } from "@hibernaut/settings";
import { boundMode, idsOf } from "./bound.ts";
import { BridgeNetwork, type BridgeOptions } from "./bridge/index.ts";
import { machineHost } from "./bridge/subnet.ts";
import type { KnownMachine, NameRules, Network, Way } from "./contract.ts";
import { refuseLoss } from "./stranded.ts";
import { UserNetwork } from "./user.ts";

export interface OpenedNetwork {
  network: Network;
  /** Why this mode was chosen, for people. */
  reason: string;
  /** Whether `auto` settled for less than a bridge because something failed. */
  fallback: boolean;
  /** The host's address in the machines' network, on which the name server listens. Absent in user mode. */
  gateway?: string;
  /** The rules of machines, for those who judge by names. Absent in user mode, which keeps none. */
  names?: NameRules;
  /** Closes these TCP ports to machines, and no others. Has no effect in user mode. */
  protect(control: Pick<BridgeOptions, "controlPorts" | "controlAddresses">): Promise<void>;
  /** Limits what clients open at these TCP ports, and at no others. Has no effect in user mode. */
  offer(ports: readonly number[]): Promise<void>;
  /** How many first packets of connections were dropped by that limit. 0 in user mode. */
  dropped(): Promise<number>;
  /** Leads connections to apps' own addresses to ports of the gateway. Has no effect in user mode, which has no such addresses. */
  lead(ways: readonly Way[]): Promise<void>;
  /** Stops managing the network. It stays in place for guests that keep running. */
  close(): Promise<void>;
}

interface NetworkOptions extends Omit<BridgeOptions, "judge"> {
  /** Machines may lose their memory if the settings ask for another network than theirs. */
  dropSnapshots: boolean;
}

const nothing = async () => {};
const NOTHING_TO_MANAGE = { protect: nothing, offer: nothing, dropped: async () => 0, lead: nothing, close: nothing };

/**
 * Opens the network of the configured mode. `auto` keeps the mode that the machines belong to; without machines it tries
 * to set up a bridge, and says in `reason` why there is none. Rejects with a HibernautError when the mode cannot be had,
 * or when machines would lose their memory or their addresses in it without anyone having asked for that.
 */
export async function openNetwork(mode: Settings["network"], options: NetworkOptions): Promise<OpenedNetwork> {
  const bound = boundMode(options.machines);
  if (mode === "user") return userNetwork(mode, options, { reason: "set by HIBERNAUT_NETWORK", fallback: false });
  if (mode === "auto" && bound === "user")
    return userNetwork(mode, options, {
      reason: "the machines of this data directory belong to it; HIBERNAUT_NETWORK=bridge moves them",
      fallback: false,
    });
  try {
    return await bridgeNetwork(mode, options);
  } catch (error) {
    if (mode === "bridge" || !(error instanceof HibernautError) || error instanceof Refused) throw error;
    if (bound === undefined) return userNetwork(mode, options, { reason: messageOf(error), fallback: true });
    throw noBridge(options.machines, error);
  }
}

/** The bridge could be set up, and must not be. */
class Refused extends HibernautError {}

async function bridgeNetwork(modeSetting: Settings["network"], options: NetworkOptions): Promise<OpenedNetwork> {
  const { machines, dropSnapshots, subnet: subnetSetting } = options;
  const network = await BridgeNetwork.open({
    ...options,
    judge({ subnet, taken }) {
      const owns = (address: string) => machineHost(subnet, address) !== undefined;
      const text = formatSubnet(subnet);
      try {
        refuseLoss(
          machines,
          { mode: "bridge", subnet: text, modeSetting, subnetSetting, taken, owns },
          { dropSnapshots },
        );
      } catch (error) {
        throw new Refused("failed_precondition", messageOf(error));
      }
    },
  });
  return {
    network,
    reason: network.description,
    fallback: false,
    gateway: network.gateway,
    names: network,
    protect: (control) => network.protect(control),
    offer: (ports) => network.offer(ports),
    dropped: () => network.dropped(),
    lead: (ways) => network.lead(ways),
    close: () => network.close(),
  };
}

function userNetwork(
  modeSetting: Settings["network"],
  { machines, subnet: subnetSetting, dropSnapshots }: NetworkOptions,
  { reason, fallback }: { reason: string; fallback: boolean },
): OpenedNetwork {
  const network = new UserNetwork();
  const owns = (address: string) => network.owns(address);
  refuseLoss(machines, { mode: "user", modeSetting, subnetSetting, owns }, { dropSnapshots });
  return { ...NOTHING_TO_MANAGE, network, reason, fallback };
}

/** The machines belong to a bridge that cannot be had now: they are not moved behind their owner's back. */
function noBridge(machines: readonly KnownMachine[], cause: HibernautError): HibernautError {
  const lose = machines.filter(({ memory }) => memory !== undefined);
  const cost =
    lose.length === 0
      ? "They would get new addresses in another network."
      : `In another network, ${lose.length} of them would lose ${lose.length === 1 ? "its" : "their"} memory: ${idsOf(lose)}.`;
  const command = `HIBERNAUT_NETWORK=user hibernaut serve${lose.length === 0 ? "" : " --drop-snapshots"}`;
  return new HibernautError(
    cause.code,
    `The machines of this data directory (${machines.length}) belong to a bridge, which cannot be set up now. ${cause.message} ${cost} Repair the bridge and start the platform again, or move them: \`${command}\`.`,
    cause.details,
    { cause },
  );
}
