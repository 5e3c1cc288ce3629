/** The messages between proxies and the coordinator, and the table of machines in them. All of it is JSON. */
import type { BootKind, MachineState } from "@hibernaut/domain/machine";
import type { Traffic } from "@hibernaut/store";
import type { ServicePolicy } from "./service-policy.ts";
import type { TcpPort } from "./tcp/ports.ts";

/** What a proxy is told about a machine. */
export interface TableMachine {
  id: string;
  app: string;
  name: string;
  state: MachineState;
  address: string;
  /** How the machine last started, for the `Hibernaut-Wake` header. */
  lastBoot: { kind: BootKind; at: string } | null;
  /** Whether the machine's checks let it take requests; true for a machine without checks. */
  healthy: boolean;
  /** Why the machine is in its state, for the response if it cannot be woken. */
  reason: string | null;
  /**
   * The app is known to crash, or with `lost` its virtual machine to vanish: a request would wait for it in vain. `retryAt` is
   * RFC 3339, or null for never.
   */
  crash: { reason: string; retryAt: string | null; lost?: true } | null;
  /** Why no request reaches the app although the machine is running; null if requests do. */
  unreachable: string | null;
  /** Its owner took it out of the proxy's hands: it gets no requests, and none wakes it. */
  cordoned: boolean;
  /** The machine is in excess of what the app needs: it gets requests only once all others are at their soft limit. */
  resting: boolean;
  /** The start that the machine needs next, or is in, is a cold one. Absent if not, or if nobody asks. */
  cold?: true;
  /** The guest that had connections is gone: the machine sleeps, or starts, without its memory. Absent if not. */
  withoutMemory?: true;
  /** Ports of the proxy whose TCP connections lead to the machine. Absent when there are none. */
  tcp?: TcpPort[];
  /** Those with handlers. Apart, because a proxy of an earlier release would open them without TLS. */
  tcpHandled?: TcpPort[];
  /** Its ports at the app's own address. Apart for the same reason. Absent when the app is in no network, or has none. */
  own?: TcpPort[];
  /** The host that has the machine. Absent if it is this one. */
  remote?: RemoteMachine;
  /** Null for a machine without a service, a worker too, and for one whose services are for its network alone. */
  policy: WirePolicy | null;
  /** That of a worker, and of such a machine. Apart, because a proxy of an earlier release would send HTTP to it. */
  ownPolicy?: WirePolicy;
}

/** Returns the policy of a machine. Null if no request and no connection can reach it. */
export function policyIn({ policy, ownPolicy }: Pick<TableMachine, "policy" | "ownPolicy">): WirePolicy | null {
  return policy ?? ownPolicy ?? null;
}

/** A machine on another host of the cluster. */
export interface RemoteMachine {
  host: string;
  /** Where its proxy takes requests from other hosts, `host:port`. Null while the host is away. */
  peer: string | null;
  /** SHA-256 of the public key that it has to have, hex. */
  fingerprint: string;
  /** What is open on the machine, in the unit of its service, as its host last said, in coarse steps. */
  load: number;
}

/** A policy with null for a hard limit of Infinity, which JSON does not have. Nor does it have undefined. */
type WirePolicy = Omit<ServicePolicy, "hardLimit" | "ownHeaders"> &
  Partial<Pick<ServicePolicy, "ownHeaders">> & { hardLimit: number | null };

/** A message from the coordinator to a proxy. */
export type ToProxy =
  /** The whole table. Sent first. */
  | {
      kind: "table";
      machines: TableMachine[];
      hostnames: Record<string, string>;
      /** Names at which no app answers. Earlier releases send none. */
      reserved?: string[];
      suffixes: string[];
      /** The host's address in the machines' network. Absent in user mode. */
      gateway?: string;
      /** Whether connections to a machine outlive its sleep: on a bridge they do, in user mode they do not. */
      connectionsSurvive: boolean;
      /** Whether the platform starts no machines at the moment. */
      draining: boolean;
      /** The answers to open challenges of certificate authorities, by `<hostname>/<token>`. */
      challenges: Record<string, string>;
      /** The certificates that answer others, with their keys in PEM, by hostname. Earlier releases send none. */
      challengeCertificates?: Record<string, string>;
    }
  /** The platform begins, or ceases, to refuse starts. */
  | { kind: "draining"; draining: boolean }
  /** A machine is new or changed. */
  | { kind: "machine"; machine: TableMachine }
  | { kind: "gone"; id: string }
  | { kind: "hostnames"; hostnames: Record<string, string>; reserved?: string[] }
  /** Challenges were opened or closed. Answered with `noted`: an authority may ask right after that. */
  | {
      kind: "challenges";
      question: number;
      challenges: Record<string, string>;
      challengeCertificates?: Record<string, string>;
    }
  /** The load that the other proxies put on machines, for machines where it changed. */
  | { kind: "others"; loads: Record<string, number> }
  /**
   * Asks whether the machine may sleep. The proxy agrees, and takes the machine out of rotation, if nothing has been open
   * on it for `idleMs`. Answered with `drained`.
   */
  | { kind: "drain"; id: string; question: number; idleMs: number }
  /** The machine does not sleep after all. */
  | { kind: "undrain"; id: string }
  /**
   * A wake that the proxy requested failed. `full`: for lack of room in memory; `overQuota`: the app has as many running
   * machines as it may have. Earlier releases send neither.
   */
  | { kind: "wake_failed"; id: string; message: string; full?: { retryAfterS: number }; overQuota?: boolean };

/** What a proxy has open on a machine. */
export interface MachineLoad {
  /** In the unit of the machine's service. */
  load: number;
  /** Without upgraded connections, which may never end. */
  requests: number;
  /** Of a worker: its connections to apps of its network, silent ones too. Absent if it has none. */
  waits?: number;
}

/** A message from a proxy to the coordinator. */
export type FromProxy =
  /** A request needs the machine, which sleeps, is about to, or rests. */
  | {
      kind: "wake";
      id: string;
      /** The `traceparent` of the request, if it is traced. */
      trace?: string;
    }
  /** What is open on machines, for machines where it changed. */
  | { kind: "loads"; loads: Record<string, MachineLoad> }
  /** What was forwarded since the last such message, in bytes, by machine. Never sent twice. */
  | { kind: "traffic"; moved: Record<string, Traffic> }
  | { kind: "drained"; question: number; agreed: boolean }
  /** The proxy knows the challenges. */
  | { kind: "noted"; question: number }
  /** All ports for TCP connections that the proxy cannot open, each with the reason. */
  | { kind: "closed_ports"; ports: Record<string, string> }
  /** All ports at which the proxy takes connections of visitors. Earlier proxies do not say. */
  | { kind: "taken_ports"; ports: readonly number[] };

/** How a proxy reaches the coordinator. */
export interface CoordinatorLink {
  send(message: FromProxy): void;
}

export function toWire(policy: ServicePolicy): WirePolicy {
  return { ...policy, hardLimit: Number.isFinite(policy.hardLimit) ? policy.hardLimit : null };
}

/** For what an older platform does not send: the platform and its proxies are not restarted at the same moment. */
const OF_EARLIER_RELEASES = {
  pinned: false,
  worker: false,
  ownPorts: [],
  replayFrom: [],
  forceHttps: false,
  wakePage: false,
  h2Backend: false,
  ownHeaders: undefined,
} as const;

export function fromWire(policy: WirePolicy): ServicePolicy {
  return { ...OF_EARLIER_RELEASES, ...policy, hardLimit: policy.hardLimit ?? Number.POSITIVE_INFINITY };
}
