/** What a proxy knows of apps and machines, and what it and the control plane tell each other. All of it is JSON. */
import type { MachineState } from "../domain/machine.ts";
import type { Policy } from "./policy.ts";

export interface TableMachine {
  id: string;
  app: string;
  state: MachineState;
  address: string;
  /** How it last came to run, for the wake header. */
  lastBoot: { kind: "resume" | "cold"; at: string } | null;
  /** Whether its checks let it take requests; true for a machine without checks. */
  healthy: boolean;
  /** Why it is in its state, for the answer when it cannot be woken. */
  reason: string | null;
  /** Its app is known to crash: a request that waited for it would wait in vain. `retryAt` is RFC 3339, null for never. */
  crash: { reason: string; retryAt: string | null } | null;
  /** It runs, and why no request reaches its app; null when one does. */
  unreachable: string | null;
  /** Null for a machine that offers nothing. */
  policy: WirePolicy | null;
}

/** JSON has no Infinity. */
export type WirePolicy = Omit<Policy, "hardLimit"> & { hardLimit: number | null };

/** From the control plane to a proxy. */
export type ToProxy =
  /** Everything anew; sent first. */
  | {
      kind: "table";
      machines: TableMachine[];
      hostnames: Record<string, string>;
      suffixes: string[];
      /** Whether connections to a machine outlive its sleep: so they do on a bridge, and not in user mode. */
      connectionsSurvive: boolean;
    }
  /** A machine is new or changed. */
  | { kind: "machine"; machine: TableMachine }
  | { kind: "gone"; id: string }
  | { kind: "hostnames"; hostnames: Record<string, string> }
  /** Load that the other proxies put on machines, of those where it changed. */
  | { kind: "others"; loads: Record<string, number> }
  /** May this machine sleep? Take it out of rotation, if nothing is open and nothing was for `idleMs`. Answered by `drained`. */
  | { kind: "drain"; id: string; question: number; idleMs: number }
  /** It does not sleep after all. */
  | { kind: "undrain"; id: string }
  /** A wake that was asked for cannot be done. */
  | { kind: "wake_failed"; id: string; message: string };

/** From a proxy to the control plane. */
export type FromProxy =
  | { kind: "wake"; id: string }
  /** What is open on the machines where it changed: load in the unit of the service, and requests that will end by themselves. */
  | { kind: "loads"; loads: Record<string, { load: number; requests: number }> }
  | { kind: "drained"; question: number; agreed: boolean };

/** How a proxy reaches the control plane. */
export interface ControlLink {
  send(message: FromProxy): void;
}

export function toWire(policy: Policy): WirePolicy {
  return { ...policy, hardLimit: Number.isFinite(policy.hardLimit) ? policy.hardLimit : null };
}

export function fromWire(policy: WirePolicy): Policy {
  return { ...policy, hardLimit: policy.hardLimit ?? Number.POSITIVE_INFINITY };
}
