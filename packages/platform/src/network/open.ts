/** Chooses the network mode: a bridge where the host can have one, otherwise QEMU's user-mode network. */
import { HibernautError } from "../domain/errors.ts";
import type { Settings } from "../settings.ts";
import { messageOf } from "../lib/text.ts";
import { BridgeNetwork, type BridgeOptions } from "./bridge/index.ts";
import type { Network } from "./contract.ts";
import { type Present, strandedNotes } from "./stranded.ts";
import { UserNetwork } from "./user.ts";

export interface OpenedNetwork {
  network: Network;
  /** Why this mode was chosen, for people. */
  reason: string;
  /** The host's address in the machines' network, on which the name server listens. Absent in user mode. */
  gateway?: string;
  /** Sentences for the log about sleeping machines that would lose their memory in this network. */
  notes: readonly string[];
  /** Closes these TCP ports of the host to machines. Has no effect in user mode. */
  protect(ports: readonly number[]): Promise<void>;
  /** Stops managing the network. It stays in place for guests that keep running. */
  close(): Promise<void>;
}

const NOTHING_TO_MANAGE = { protect: async () => {}, close: async () => {} };

/**
 * Opens the network of the configured mode. `auto` tries to set up a bridge, and says in `reason` why there is none;
 * `bridge` rejects with a HibernautError instead.
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
  return { ...NOTHING_TO_MANAGE, network, reason, notes: strandedNotes(options.machines, present) };
}
