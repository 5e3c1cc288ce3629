/** A machine's network, as its guest and its hypervisor are told. */

/** How a guest configures its network interface. */
export interface GuestNetwork {
  /** IPv4 address with prefix length, e.g. `10.0.2.15/24`. */
  address: string;
  gateway: string;
  dns: string;
  /** Lines for the guest's `/etc/hosts`, e.g. `10.0.2.2 host.hibernaut.internal`. */
  hosts: readonly string[];
}

/** How a hypervisor connects a machine. The same for every start of a machine, so that a resumed guest sees no change. */
export type NetworkAttachment = {
  /** MAC address of the guest's interface. */
  mac: string;
  guest: GuestNetwork;
} & (
  | {
      mode: "user";
      /** The host's address on which the ports below are forwarded to the same ports of the guest. */
      address: string;
      ports: number[];
    }
  | { mode: "tap"; device: string }
);
