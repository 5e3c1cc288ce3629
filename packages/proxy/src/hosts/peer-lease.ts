/** A place at a machine of another host. That host's proxy counts the request, wakes the machine and moves the bytes. */
import { type Lease, type LeasePeer, type LeaseStart, type OwnHeader, type PeerTarget, RUNNING } from "../contract.ts";
import { hostUnreachable } from "../http/refusals.ts";
import type { LeaseKeeper } from "../machine-lease.ts";
import type { RemoteMachine } from "../messages.ts";
import type { RoutedMachine } from "../routed-machine.ts";

/** Which service of another host takes what a client asks for. */
export const SERVICES = { http: "proxy", tcp: "tcp" } as const;

/**
 * Returns how to connect to the proxy of another host, which says by `peer` where that is. Throws if this host has no
 * certificate to show there.
 */
export type ReachHost = (
  remote: { host: string; peer: string; fingerprint: string },
  kind: keyof typeof SERVICES,
) => PeerTarget;

/** What a lease tells the broker. */
export interface PeerLeaseKeeper extends Pick<LeaseKeeper, "onReleased" | "now"> {
  /** How to connect to other hosts. */
  readonly reach: ReachHost;
  /** The machine of another host answered. */
  onForwarded(app: string, host: string, wake: LeaseStart): void;
}

/** Attempts to connect to another host end after this time, in milliseconds: it is up, and one round trip away. */
const CONNECT_MS = 3_000;

export class PeerLease implements Lease {
  readonly address: string;
  readonly port: number;
  readonly machineId: string;
  readonly appName: string;
  readonly peer: LeasePeer;
  readonly connectDeadline: number;
  readonly ownHeaders: readonly OwnHeader[] | undefined;
  /** Until the other host has said how its machine came to answer, it runs. */
  wake: LeaseStart = RUNNING;
  readonly #keeper: PeerLeaseKeeper;
  readonly #machine: RoutedMachine;
  readonly #remote: RemoteMachine;
  readonly #connection: object;
  #tunnel = false;

  /**
   * @param connection identity of the client's connection
   * @param port that of another service than the one that its policy is about
   * @param hasOthers whether another machine could take the request now
   */
  constructor(
    keeper: PeerLeaseKeeper,
    machine: RoutedMachine,
    connection: object,
    { port, hasOthers }: { port: number | undefined; hasOthers: boolean },
  ) {
    const { row, policy, open } = machine;
    const remote = row.remote as RemoteMachine;
    this.address = row.address;
    this.port = port ?? policy.port;
    this.machineId = row.id;
    this.appName = row.app;
    this.peer = {
      host: remote.host,
      port: port === policy.port ? undefined : port,
      hasOthers,
      target: (kind) => this.#target(kind),
      answered: (wake) => this.#answered(wake),
    };
    this.ownHeaders = this.port === policy.port ? policy.ownHeaders : undefined;
    this.connectDeadline = performance.now() + CONNECT_MS;
    this.#keeper = keeper;
    this.#machine = machine;
    this.#remote = remote;
    this.#connection = connection;
    open.add(connection);
  }

  #target(kind: "http" | "tcp"): PeerTarget {
    const { host, peer, fingerprint } = this.#remote;
    if (peer === null) throw hostUnreachable(this.appName, host);
    return this.#keeper.reach({ host, peer, fingerprint }, kind);
  }

  #answered(wake: LeaseStart): void {
    this.wake = wake;
    this.#keeper.onForwarded(this.appName, this.#remote.host, wake);
  }

  upgraded(): void {
    this.#tunnel = true;
    this.#machine.tunnels += 1;
  }

  release(): void {
    if (this.#tunnel) this.#machine.tunnels -= 1;
    this.#machine.open.remove(this.#connection, this.#keeper.now());
    this.#keeper.onReleased(this.#machine);
  }
}

/** For proxies of a host that is in no cluster. */
export function unreachableHosts({ host }: { host: string }): never {
  throw new Error(`There is no way to host ${host}: this host is in no cluster.`);
}
