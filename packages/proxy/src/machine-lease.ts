/** A lease that the broker hands out: counts its request on the machine until it is released. */
import type { ProxyProtocolVersion } from "@hibernaut/domain/tcp-handlers";
import type { Lease, LeaseStart, OwnHeader } from "./contract.ts";
import type { RoutedMachine } from "./routed-machine.ts";

/** What a lease tells the broker. */
export interface LeaseKeeper {
  /** What is open on the machine changed. */
  onLoadChanged(machine: RoutedMachine): void;
  /** The machine has room again. */
  onReleased(machine: RoutedMachine): void;
  /** A tunnel's client sent something, and the machine is not running. */
  onWanted(machine: RoutedMachine): void;
  /** Bytes were forwarded between a client and the machine. */
  onMoved(machine: RoutedMachine, bytesIn: number, bytesOut: number): void;
  /** Whether connections to machines outlive their sleep. */
  readonly connectionsSurvive: boolean;
  /** Milliseconds of a steady clock. */
  now(): number;
}

interface LeaseTerms {
  wake: LeaseStart;
  connectTimeoutMs: number;
  port: number | undefined;
  quiet: boolean;
  proxyProtocol?: ProxyProtocolVersion | undefined;
  http2: boolean;
}

/** A class, not an object of closures: one is made for every request. */
export class MachineLease implements Lease {
  readonly address: string;
  readonly port: number;
  readonly machineId: string;
  readonly appName: string;
  readonly wake: LeaseStart;
  readonly connectDeadline: number;
  readonly http2: boolean;
  readonly ownHeaders: readonly OwnHeader[] | undefined;
  readonly proxyProtocol: ProxyProtocolVersion | undefined;
  readonly #keeper: LeaseKeeper;
  readonly #machine: RoutedMachine;
  readonly #connection: object;
  readonly #mayBeQuiet: boolean;
  #tunnel = false;
  /** A quiet tunnel that does not count at present. */
  #quiet = false;

  /**
   * @param connection identity of the client's connection
   * @param connectTimeoutMs how long the machine's port may take to answer
   * @param port that of another service than the one that its policy is about
   * @param quiet whether a silent tunnel lets the machine sleep
   * @param proxyProtocol of a TCP connection
   * @param http2 whether the request goes to the app over HTTP/2
   */
  constructor(
    keeper: LeaseKeeper,
    machine: RoutedMachine,
    connection: object,
    { wake, connectTimeoutMs, port, quiet, proxyProtocol, http2 }: LeaseTerms,
  ) {
    const { row, policy, open } = machine;
    this.address = row.address;
    this.port = port ?? policy.port;
    this.machineId = row.id;
    this.appName = row.app;
    this.wake = wake;
    this.connectDeadline = performance.now() + connectTimeoutMs;
    // The other services of a machine have none.
    this.ownHeaders = this.port === policy.port ? policy.ownHeaders : undefined;
    this.proxyProtocol = proxyProtocol;
    this.http2 = http2 && this.port === policy.port;
    this.#mayBeQuiet = quiet;
    this.#keeper = keeper;
    this.#machine = machine;
    this.#connection = connection;
    open.add(connection);
    keeper.onLoadChanged(machine);
  }

  upgraded(): void {
    this.#tunnel = true;
    this.#machine.tunnels += 1;
    this.#keeper.onLoadChanged(this.#machine);
  }

  moved(bytesIn: number, bytesOut: number): void {
    this.#keeper.onMoved(this.#machine, bytesIn, bytesOut);
  }

  wanted(): void {
    const { state, policy } = this.#machine;
    // One that is about to sleep is called back: it may have this already, and would sleep over it.
    if (state !== "running" && policy.autostart) this.#keeper.onWanted(this.#machine);
  }

  quiet(quiet: boolean): void {
    const { open } = this.#machine;
    if (!this.#tunnel || quiet === this.#quiet) return;
    if (quiet && !(this.#mayBeQuiet && this.#keeper.connectionsSurvive)) return;
    this.#quiet = quiet;
    if (quiet) return this.#forget();
    this.#machine.tunnels += 1;
    open.add(this.#connection);
    this.#keeper.onLoadChanged(this.#machine);
  }

  release(): void {
    if (!this.#quiet) this.#forget();
  }

  /** The machine's place is free. */
  #forget(): void {
    if (this.#tunnel) this.#machine.tunnels -= 1;
    this.#machine.open.remove(this.#connection, this.#keeper.now());
    this.#keeper.onLoadChanged(this.#machine);
    this.#keeper.onReleased(this.#machine);
  }
}
