/**
 * The network without root: QEMU's user-mode stack. Each machine has its own loopback address on the host, `127.x.y.z`,
 * where each service port of the guest has the same number. Addresses and ports stay the same across suspend, resume
 * and restarts.
 */
import { randomInt } from "node:crypto";
import type { Egress } from "@hibernaut/domain/egress";
import { HibernautError } from "@hibernaut/domain/errors";
import type { GuestNetwork, NetworkAttachment } from "@hibernaut/domain/guest-network";
import { HOST_NAME, type Network, type NetworkMachine } from "./contract.ts";
import { macOf } from "./mac.ts";

/** The addresses inside QEMU's stack. They are the same for all machines, because each has its own stack. */
const GUEST: GuestNetwork = {
  address: "10.0.2.15/24",
  gateway: "10.0.2.2",
  dns: "10.0.2.3",
  hosts: [`10.0.2.2 ${HOST_NAME}`],
};
/** 127.0.x.y is left to other programs on the host. */
const SECOND_OCTET = { from: 16, to: 254 };
const TRIES = 10_000;

/** The user-mode network. It has nothing to set up on the host. */
export class UserNetwork implements Network {
  readonly mode = "user";

  /** Picks at random, because several platforms on one host share 127.0.0.0/8 without knowing each other. */
  allocate(taken: ReadonlySet<string>): string {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const address = `127.${randomInt(SECOND_OCTET.from, SECOND_OCTET.to)}.${randomInt(0, 256)}.${randomInt(1, 255)}`;
      if (!taken.has(address)) return address;
    }
    throw new HibernautError(
      "resource_exhausted",
      "No loopback address is left for another machine. Destroy machines that you no longer need.",
    );
  }

  owns(address: string): boolean {
    return address.startsWith("127.");
  }

  async attach({ id, address, egress }: NetworkMachine, ports: number[]): Promise<NetworkAttachment> {
    requireNoRules(egress);
    return { mode: "user", mac: macOf(id), guest: GUEST, address, ports };
  }

  async requireRules(egress: Egress | undefined): Promise<void> {
    requireNoRules(egress);
  }

  async govern({ egress }: NetworkMachine): Promise<void> {
    requireNoRules(egress);
  }

  async detach(): Promise<void> {}
}

/** QEMU's stack connects as the host does: rules that it cannot keep must not seem to hold. */
function requireNoRules(egress: Egress | undefined): void {
  if (egress !== undefined)
    throw new HibernautError(
      "failed_precondition",
      "The machine has rules for where it may connect to (network.egress), and the user-mode network cannot keep them. Run the platform as root with HIBERNAUT_NETWORK=bridge, or remove the rules.",
    );
}
