/**
 * Network with root: a tap per machine, one bridge, and rules of our own in nftables. What should be there follows
 * from the machines alone, and `#work` makes it so: at the start, after a crash, and with every machine that comes
 * or goes. A machine that sleeps keeps everything, so a resume has nothing to do.
 */
import { randomInt } from "node:crypto";
import { HibernautError } from "../../domain/errors.ts";
import {
  type GuestNetwork,
  HOST_NAME,
  type KnownMachine,
  type Network,
  type NetworkAttachment,
  type NetworkMachine,
} from "../contract.ts";
import { macOf } from "../mac.ts";
import {
  addressesOf,
  bridge,
  forwardPackets,
  hasLink,
  hasTables,
  ip,
  listTaps,
  nft,
  withoutIpv6,
  writeNote,
} from "./commands.ts";
import { bridgeSettings, forwardingEntry, newBridge, newTap, staleAddresses, tapSettings } from "./links.ts";
import { type Names, namesFor, tapName } from "./names.ts";
import { removeNetwork, removeTaps } from "./remove.ts";
import { type Port, rulesetOf } from "./ruleset.ts";
import { type Selection, selectSubnet, type Taken } from "./select.ts";
import { formatSubnet, type Subnet, size } from "../../lib/ipv4.ts";
import { addressOf, FIRST_MACHINE_HOST, GATEWAY_HOST, machineHost } from "./subnet.ts";

/** How often the rules are looked for: `systemctl restart nftables` removes everybody's. In milliseconds. */
const WATCH_MS = 5_000;

export interface BridgeOptions {
  /** Real path of the data folder; names and the subnet follow from it. */
  dataDir: string;
  /** `a.b.c.d/n`, or `auto`. */
  subnet: string;
  /** All machines there are; those with an address of another network are left out. */
  machines: readonly KnownMachine[];
  /** TCP ports of the host that no machine may reach. */
  controlPorts: readonly number[];
  /** Told when rules had vanished and were set up again, or could not be. */
  onTrouble?(message: string): void;
}

export class BridgeNetwork implements Network {
  readonly mode = "bridge";
  /** The subnet that this one stands in for, when that is taken. */
  readonly taken: Taken | undefined;
  readonly #dataDir: string;
  readonly #names: Names;
  readonly #subnet: Subnet;
  readonly #machines = new Map<string, NetworkMachine>();
  /** Taps that this process has set up. */
  readonly #ready = new Set<string>();
  #controlPorts: readonly number[];
  #running: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;
  #watch: NodeJS.Timeout | undefined;

  private constructor(names: Names, { subnet, taken }: Selection, { dataDir, machines, controlPorts }: BridgeOptions) {
    this.taken = taken;
    this.#dataDir = dataDir;
    this.#names = names;
    this.#subnet = subnet;
    this.#controlPorts = controlPorts;
    for (const machine of machines) if (this.owns(machine.address)) this.#machines.set(machine.id, machine);
  }

  /**
   * Sets up the bridge, and everything for the machines that exist. Rejects with a HibernautError that says what
   * this host lacks; what was made until then is gone again.
   */
  static async open(options: BridgeOptions): Promise<BridgeNetwork> {
    if (process.getuid?.() !== 0)
      throw new HibernautError("failed_precondition", "The bridge network needs a platform that runs as root.");
    const { dataDir, subnet: setting, machines } = options;
    const names = namesFor(dataDir);
    const network = new BridgeNetwork(names, await selectSubnet({ dataDir, names, setting, machines }), options);
    try {
      await forwardPackets();
      await network.#sync();
      await network.#tryTap();
    } catch (error) {
      // With machines, what is there may be in use by guests that run.
      if (network.#machines.size === 0) await removeNetwork(names).catch(() => {});
      throw error;
    }
    network.#watch = setInterval(() => void network.#repair(options.onTrouble), WATCH_MS).unref();
    return network;
  }

  /** The host's address on the bridge: the guests' gateway and name server. */
  get gateway(): string {
    return addressOf(this.#subnet, GATEWAY_HOST);
  }

  /** As `a.b.c.d/n`. */
  get subnet(): string {
    return formatSubnet(this.#subnet);
  }

  get description(): string {
    return `${this.#names.bridge} with ${formatSubnet(this.#subnet)}`;
  }

  /** The next free one from a random place on: an address that was just given up rests before somebody else has it. */
  allocate(taken: ReadonlySet<string>): string {
    const count = size(this.#subnet) - FIRST_MACHINE_HOST - 1;
    const start = randomInt(count);
    for (let step = 0; step < count; step += 1) {
      const address = addressOf(this.#subnet, FIRST_MACHINE_HOST + ((start + step) % count));
      if (!taken.has(address)) return address;
    }
    throw new HibernautError(
      "resource_exhausted",
      `All ${count} addresses of ${formatSubnet(this.#subnet)} are taken. Destroy machines that you no longer need.`,
    );
  }

  owns(address: string): boolean {
    return machineHost(this.#subnet, address) !== undefined;
  }

  async attach(machine: NetworkMachine): Promise<NetworkAttachment> {
    const { id, app, address } = machine;
    const { tap, mac } = this.#port(machine);
    const known = this.#machines.get(id)?.address === address && this.#ready.has(tap);
    if (!known || !(await hasLink(tap))) {
      this.#ready.delete(tap);
      this.#machines.set(id, { id, app, address });
      await this.#sync();
    }
    return { mode: "tap", mac, guest: this.#guest(address), device: tap };
  }

  async detach(machineId: string): Promise<void> {
    if (this.#machines.delete(machineId)) await this.#sync();
  }

  /** Refuses machines these ports of the host, from now on. */
  async protect(controlPorts: readonly number[]): Promise<void> {
    this.#controlPorts = controlPorts;
    await this.#sync();
  }

  /** Stops watching. Everything stays: guests run on. */
  async close(): Promise<void> {
    clearInterval(this.#watch);
    await this.#running.catch(() => {});
  }

  #guest(address: string): GuestNetwork {
    const { gateway } = this;
    return { address: `${address}/${this.#subnet.prefix}`, gateway, dns: gateway, hosts: [`${gateway} ${HOST_NAME}`] };
  }

  #port({ id, app, address }: NetworkMachine): Port {
    const host = machineHost(this.#subnet, address);
    if (host === undefined) {
      throw new HibernautError(
        "failed_precondition",
        `${address} is not in ${formatSubnet(this.#subnet)}, the machines' subnet. Stop machine ${id} and start it again: it gets a new address.`,
      );
    }
    return { tap: tapName(this.#names, host), mac: macOf(id), address, app };
  }

  /** Makes it all so, once. One runs at a time; calls that come while one waits share it. */
  #sync(): Promise<void> {
    this.#queued ??= this.#running
      .catch(() => {}) // whoever asked for that one was told
      .then(() => {
        this.#queued = undefined;
        return this.#work();
      });
    this.#running = this.#queued;
    return this.#running;
  }

  /** Rules first: a tap that no rule knows yet can send nothing. */
  async #work(): Promise<void> {
    const names = this.#names;
    const ports = [...this.#machines.values()].map((machine) => this.#port(machine));
    await nft(rulesetOf({ names, subnet: this.#subnet, ports, controlPorts: this.#controlPorts }));
    if (!(await hasLink(names.bridge))) {
      this.#ready.clear();
      await ip([...newBridge(names), ...bridgeSettings(names, this.#subnet)]);
      await withoutIpv6(names.bridge);
      await writeNote(names.bridge, this.#dataDir);
    } else if (this.#ready.size === 0) {
      await ip([
        ...staleAddresses(names, this.#subnet, await addressesOf(names.bridge)),
        ...bridgeSettings(names, this.#subnet),
      ]);
      await writeNote(names.bridge, this.#dataDir);
    }
    const taps = await listTaps(names);
    const wanted = new Set(ports.map(({ tap }) => tap));
    await removeTaps(
      names,
      this.#subnet,
      [...taps].filter((tap) => !wanted.has(tap)),
    );
    const fresh = ports.filter(({ tap }) => !this.#ready.has(tap));
    await ip(fresh.flatMap((port) => [...(taps.has(port.tap) ? [] : newTap(port.tap)), ...tapSettings(names, port)]));
    await bridge(fresh.map(forwardingEntry));
    this.#ready.clear();
    for (const tap of wanted) this.#ready.add(tap);
  }

  /** Whether this host can make taps at all: /dev/net/tun may be missing in a container. */
  async #tryTap(): Promise<void> {
    const trial = tapName(this.#names, 0);
    await ip([...newTap(trial), `link delete dev ${trial}`]);
  }

  async #repair(onTrouble: BridgeOptions["onTrouble"]): Promise<void> {
    try {
      if ((await hasTables(this.#names)) && (await hasLink(this.#names.bridge))) return;
      await this.#sync();
      onTrouble?.("somebody removed the rules or the bridge of the machines' network; they were set up again");
    } catch (error) {
      onTrouble?.(`the machines' network cannot be repaired: ${String(error)}`);
    }
  }
}
