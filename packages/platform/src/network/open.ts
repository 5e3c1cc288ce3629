/** Which network the machines get: the bridge where this host can have one, else QEMU's own. */
import { HibernautError } from "../domain/errors.ts";
import type { Settings } from "../settings.ts";
import { messageOf } from "../lib/text.ts";
import { BridgeNetwork, type BridgeOptions } from "./bridge/index.ts";
import type { Network } from "./contract.ts";
import { type Present, strandedNotes } from "./stranded.ts";
import { UserNetwork } from "./user.ts";

interface OpenedNetwork {
  network: Network;
  /** Why this mode, for people. */
  reason: string;
  /** The host's address in the machines' network, where there is one: the name server listens on it. */
  gateway?: string;
  /** Sentences about machines that sleep and would lose their memory here, for the log. */
  notes: readonly string[];
  /** Refuses machines these TCP ports of the host, where the network can. */
  protect(ports: readonly number[]): Promise<void>;
  /** Lets go of the network, which stays for guests that run on. */
  close(): Promise<void>;
}

const USER = { protect: async () => {}, close: async () => {} };

/**
 * Opens the network that is set. `auto` tries the bridge by setting it up, and says in `reason` why it is not
 * that; `bridge` rejects with a HibernautError instead.
 */
export async function openNetwork(mode: Settings["network"], options: BridgeOptions): Promise<OpenedNetwork> {
  if (mode === "user") return userNetwork(mode, options, "set by HIBERNAUT_NETWORK");
  try {
    const network = await BridgeNetwork.open(options);
    const { subnet, taken, description: reason } = network;
    const owns = (address: string) => network.owns(address);
    const present: Present = {
      mode: "bridge",
      subnet,
      modeSetting: mode,
      subnetSetting: options.subnet,
      reason,
      taken,
      owns,
    };
    return {
      network,
      reason,
      notes: strandedNotes(options.machines, present),
      gateway: network.gateway,
      protect: (ports) => network.protect(ports),
      close: () => network.close(),
    };
  } catch (error) {
    if (mode === "bridge" || !(error instanceof HibernautError)) throw error;
    return userNetwork(mode, options, messageOf(error));
  }
}

function userNetwork(modeSetting: Settings["network"], options: BridgeOptions, reason: string): OpenedNetwork {
  const network = new UserNetwork();
  const owns = (address: string) => network.owns(address);
  const present: Present = { mode: "user", modeSetting, subnetSetting: options.subnet, reason, owns };
  return { ...USER, network, reason, notes: strandedNotes(options.machines, present) };
}
