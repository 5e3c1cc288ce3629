/** What the platform asks of a network mode: `user.ts` needs no root, `bridge/` does and isolates. */

/** The name by which an app reaches services of the host; the same in every mode. */
export const HOST_NAME = "host.hibernaut.internal";

/** What the guest is told about its own interface. */
export interface GuestNetwork {
  /** IPv4 address with prefix length, e.g. `10.0.2.15/24`. */
  address: string;
  gateway: string;
  dns: string;
  /** Lines for the guest's `/etc/hosts`, e.g. `10.0.2.2 host.hibernaut.internal`. */
  hosts: readonly string[];
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

export type NetworkMode = "user" | "bridge";

/** What a network needs to know of a machine. */
export interface NetworkMachine {
  id: string;
  /** Machines of one app may reach each other. */
  app: string;
  /** One that `allocate` gave. */
  address: string;
}

/** A machine as a platform finds it when it starts. */
export interface KnownMachine extends NetworkMachine {
  /** Where its memory is: in a snapshot, or in a guest that may run. Absent: it has none to lose. */
  memory?: "asleep" | "awake";
}

export interface Network {
  readonly mode: NetworkMode;
  /** An address that no machine in `taken` has. Throws `resource_exhausted` when none is left. */
  allocate(taken: ReadonlySet<string>): string;
  /** Whether the address is one of this network's. It is not when the mode or its addresses changed since. */
  owns(address: string): boolean;
  /**
   * Makes ready what a machine's VMM will be plugged into. Safe to repeat, and next to free for a machine that
   * was attached before: what is made stays while the machine sleeps.
   */
  attach(machine: NetworkMachine, ports: number[]): Promise<NetworkAttachment>;
  /** Gives back what `attach` made. Safe to repeat. */
  detach(machineId: string): Promise<void>;
}
