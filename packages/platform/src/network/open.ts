/** Which network the machines get: the bridge where this host can have one, else QEMU's own. */
import { HibernautError } from "../errors.ts";
import type { Settings } from "../settings.ts";
import { messageOf } from "../text.ts";
import { BridgeNetwork, type BridgeOptions } from "./bridge/index.ts";
import type { Network } from "./contract.ts";
import { UserNetwork } from "./user.ts";

export interface OpenedNetwork {
  network: Network;
  /** Why this mode, for people. */
  reason: string;
  /** The host's address in the machines' network, where there is one: the name server listens on it. */
  gateway?: string;
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
  if (mode === "user") return { ...USER, network: new UserNetwork(), reason: "set by HIBERNAUT_NETWORK" };
  try {
    const network = await BridgeNetwork.open(options);
    return {
      network,
      reason: network.description,
      gateway: network.gateway,
      protect: (ports) => network.protect(ports),
      close: () => network.close(),
    };
  } catch (error) {
    if (mode === "bridge" || !(error instanceof HibernautError)) throw error;
    return { ...USER, network: new UserNetwork(), reason: messageOf(error) };
  }
}
