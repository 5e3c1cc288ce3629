/** What the platform needs from a network mode. `user.ts` works without root; `bridge/` needs root and isolates apps. */
import { machineEgress } from "@hibernaut/domain/config";
import { type Egress, withInjected } from "@hibernaut/domain/egress";
import type { NetworkAttachment } from "@hibernaut/domain/guest-network";
import type { MachineRecord } from "@hibernaut/domain/machine";

/** The name by which an app reaches services of the host, in every mode. */
export const HOST_NAME = "host.hibernaut.internal";

/** The names of all bridges and taps of all platforms begin with this, and no other interface's should. */
export const PREFIX = "hib";

const BRIDGE_NAME = new RegExp(`^${PREFIX}[0-9a-f]{6}$`);

/** Whether an interface is named like the bridge of a platform. */
export function isBridgeName(device: string): boolean {
  return BRIDGE_NAME.test(device);
}

export type NetworkMode = "user" | "bridge";

/** A TCP port of an IPv4 address. */
export interface Endpoint {
  address: string;
  port: number;
}

/** What a network needs to know about a machine. */
export interface NetworkMachine {
  id: string;
  /** Machines of one app may reach each other. */
  app: string;
  /** An IPv4 address from `allocate`. */
  address: string;
  /** Where it may connect to. Without rules, wherever the network lets machines. */
  egress?: Egress | undefined;
  /** Keeps records from being passed, whose rules would be missed: see {@link networkMachine}. */
  config?: never;
}

/** Returns what a network needs to know about the machine of a record. */
export function networkMachine({
  id,
  app,
  address,
  config,
  sandbox,
}: Pick<MachineRecord, "id" | "app" | "address" | "config" | "sandbox">): NetworkMachine {
  return { id, app, address, egress: withInjected(machineEgress(config), sandbox?.network?.rules) };
}

/** Where the host judges by names, as far as it does: where it does not, machines with rules find nothing. */
export interface Doors {
  /** The ports to which connections are led that are judged by the name in them. */
  gate?: { http: number; tls: number } | undefined;
  /** Whether the name server at the gateway's address is the platform's own. */
  dns: boolean;
}

/** An address that a name server answered with, and for how many seconds it holds. */
export interface Answered {
  address: string;
  ttlS: number;
}

/** What a machine was kept from connecting to. */
export interface Refused {
  machineId: string;
  /** Where to: an IPv4 address. */
  address: string;
  protocol: "tcp" | "udp";
  port: number;
}

/** A machine as a platform finds it when it starts. */
export interface KnownMachine extends NetworkMachine {
  /** Where the machine's memory is: in a snapshot, or in a guest that may be running. Absent when it has no memory. */
  memory?: "asleep" | "awake";
}

/** Connects machines with each other, with the host and with the internet. */
export interface Network {
  readonly mode: NetworkMode;
  /** Returns an address that is not in `taken`. Throws `resource_exhausted` when no address is left. */
  allocate(taken: ReadonlySet<string>): string;
  /** Whether the address belongs to this network. It does not when the mode or the subnet has changed since. */
  owns(address: string): boolean;
  /**
   * Sets up what a machine's VMM will be connected to. Safe to repeat, and almost free for a machine that was attached
   * before, because everything stays in place while the machine sleeps. `ports` are the guest's TCP ports to forward.
   */
  attach(machine: NetworkMachine, ports: number[]): Promise<NetworkAttachment>;
  /** Throws `failed_precondition` where the network cannot keep rules, if these are any. */
  requireRules(egress: Egress | undefined): Promise<void>;
  /**
   * Changes where an attached machine may connect to, at once, awake or asleep; connections that are open are judged
   * again. Throws `failed_precondition` where the network cannot keep rules.
   */
  govern(machine: NetworkMachine): Promise<void>;
  /** Removes what `attach` set up. Safe to repeat. */
  detach(machineId: string): Promise<void>;
}

/** A port of an app's own address, and the port of the gateway to which connections to it are led. */
export interface Way {
  /** The network whose machines may take it, as `groupOf` has it without its slash. */
  network: string;
  /** An address of `APP_ADDRESSES`. */
  address: string;
  port: number;
  to: number;
}

/** What those need who judge machines' connections by names. */
export interface NameRules {
  /** The machine with this address, and the rules that it has. */
  machineAt(address: string): NetworkMachine | undefined;
  /**
   * Lets the machine with this address reach those that a name which it may reach has now. Resolves with false when it has
   * learnt as many as one may, or no longer has these very rules: then the answer is not for it.
   */
  learn(machine: string, rules: Egress, answers: readonly Answered[]): Promise<boolean>;
  /** Opens these doors to machines with rules, and no others. */
  judge(doors: Doors): Promise<void>;
  /** Calls `listener` when a machine has other rules, or is gone: without its rules and address then. One listener. */
  onChanged(listener: (machine: NetworkMachine) => void): void;
  /** Whether this is where a cluster is controlled, which no machine may reach. */
  isControl(address: string, port: number): boolean;
}
