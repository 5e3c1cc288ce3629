/** What the platform asks of a network mode. `user.ts` needs no root; a bridge fits the same contract. */

/** What the guest is told about its own interface. */
export interface GuestNetwork {
  /** IPv4 address with prefix length, e.g. `10.0.2.15/24`. */
  address: string;
  gateway: string;
  dns: string;
}

/** How a hypervisor plugs a machine in. Equal for every start of a machine: a resumed guest notices nothing. */
export type NetworkAttachment = {
  /** MAC address of the guest's interface. */
  mac: string;
  guest: GuestNetwork;
} & (
  | {
      mode: "user";
      /** Host address on which the ports below are forwarded to the same ports of the guest. */
      address: string;
      ports: number[];
    }
  | { mode: "tap"; device: string }
);

export interface Network {
  readonly mode: "user" | "tap";
  /** An address that no machine in `taken` has. Rejects with `resource_exhausted` when none is left. */
  allocate(taken: ReadonlySet<string>): string;
  /** Makes ready what a machine's VMM will be plugged into. Safe to repeat. */
  attach(machineId: string, address: string, ports: number[]): Promise<NetworkAttachment>;
  /** Gives back what `attach` made. Safe to repeat. */
  detach(machineId: string): Promise<void>;
}
