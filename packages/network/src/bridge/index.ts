/**
 * The network with root: one tap per machine, one bridge, and our own rules in nftables. What should exist follows from
 * the machines alone, and `#apply` makes it so at the start, after a crash, and whenever a machine is created or
 * destroyed. A sleeping machine keeps everything, so a resume has nothing to set up.
 */
import { randomInt } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Egress } from "@hibernaut/domain/egress";
import { HibernautError } from "@hibernaut/domain/errors";
import type { GuestNetwork, NetworkAttachment } from "@hibernaut/domain/guest-network";
import { background } from "@hibernaut/lib/background";
import { withHostLock } from "@hibernaut/lib/host-lock";
import { formatSubnet, type Subnet, size } from "@hibernaut/lib/ipv4";
import {
  type Answered,
  type Doors,
  type Endpoint,
  HOST_NAME,
  type KnownMachine,
  type NameRules,
  type Network,
  type NetworkMachine,
  type Refused,
  type Way,
} from "../contract.ts";
import { macOf } from "../mac.ts";
import { type ClientLimits, clientTable, DROPPED, NO_CLIENT_LIMITS } from "./clients.ts";
import {
  acceptsRuleset,
  addressesOf,
  bridge,
  forwardPackets,
  hasLink,
  hasTables,
  ip,
  listTaps,
  readCounter,
  withoutIpv6,
  writeNote,
} from "./commands.ts";
import { EgressKeeper } from "./egress/keeper.ts";
import { FLOW_PROBE, type FlowLimits, flowTable, NO_LIMITS } from "./limits.ts";
import { bridgeSettings, forwardingEntry, newBridge, newTap, staleAddresses, tapSettings } from "./links.ts";
import { type Names, namesFor, tapName } from "./names.ts";
import { removeNetwork, removeOrphans, removeTaps } from "./remove.ts";
import { type Port, rulesetOf } from "./ruleset.ts";
import { type Selection, selectSubnet, type Taken } from "./select.ts";
import { addressOf, FIRST_MACHINE_HOST, GATEWAY_HOST, machineHost } from "./subnet.ts";

/** How often to check that the rules exist, in milliseconds: `systemctl restart nftables` removes all rules of the host. */
const WATCH_MS = 5_000;
/** Held between looking which subnets the host uses and having one. */
const SUBNETS_LOCK = "hibernaut-subnets";

export interface BridgeOptions {
  /** Real path of the data directory. Names and the preferred subnet follow from it. */
  dataDir: string;
  /** `a.b.c.d/n`, or `auto`. */
  subnet: string;
  /** All machines. Those with an address of another network are ignored. */
  machines: readonly KnownMachine[];
  /** TCP ports of the host that no machine may reach. */
  controlPorts: readonly number[];
  /** TCP ports of any computer that no machine may reach. Default: none. */
  controlAddresses?: readonly Endpoint[];
  /** Addresses and networks outside that no machine may reach. */
  blocked: readonly string[];
  /** What each machine may open. Default: anything. */
  limits?: FlowLimits;
  /** What each client may open at the ports that {@link BridgeNetwork.offer} names. Default: anything. */
  clients?: ClientLimits;
  /** TCP ports of the host that clients reach, until others are named. Default: none. */
  clientPorts?: readonly number[];
  /**
   * Returns what is the same for apps whose machines may reach each other, and never changes for an app. Default: each app is
   * by itself.
   */
  groupOf?(app: string): string;
  /** Called with the selected subnet before anything is changed. Throws when the platform must not use it. */
  judge?(selection: Selection): void;
  /** Receives a message when rules had disappeared and were set up again, or could not be. */
  onTrouble?(message: string): void;
  /** Receives what machines were kept from connecting to by their own rules, each destination once in 10 minutes. */
  onRefused?(refused: readonly Refused[]): void;
}

/** The bridge network of one data directory. */
export class BridgeNetwork implements Network, NameRules {
  readonly mode = "bridge";
  /** The subnet that would have been preferred, when something else on the host has it. */
  readonly taken: Taken | undefined;
  readonly #dataDir: string;
  readonly #names: Names;
  readonly #subnet: Subnet;
  readonly #machines = new Map<string, NetworkMachine>();
  /** Taps that this process has set up. */
  readonly #ready = new Set<string>();
  readonly #blocked: readonly string[];
  readonly #limits: FlowLimits;
  readonly #clients: ClientLimits;
  #clientPorts: readonly number[];
  readonly #egress: EgressKeeper;
  readonly #groupOf: (app: string) => string;
  #ways: readonly Way[] = [];
  #control: Pick<BridgeOptions, "controlPorts" | "controlAddresses">;
  #running: Promise<void> = Promise.resolve();
  /** The last run failed: what the kernel has may not be what it should have. */
  #isUnsure = false;
  #queued: Promise<void> | undefined;
  #watch: NodeJS.Timeout | undefined;
  #watching: Promise<void> | undefined;

  private constructor(names: Names, { subnet, taken }: Selection, options: BridgeOptions) {
    const { dataDir, machines, blocked, limits = NO_LIMITS, groupOf = (app) => app } = options;
    const { clients = NO_CLIENT_LIMITS, clientPorts = [] } = options;
    this.taken = taken;
    this.#dataDir = dataDir;
    this.#names = names;
    this.#subnet = subnet;
    this.#limits = limits;
    this.#clients = clients;
    this.#clientPorts = clientPorts;
    this.#groupOf = groupOf;
    this.#control = options;
    this.#blocked = blocked;
    this.#egress = new EgressKeeper(names, subnet, this.#machines);
    for (const machine of machines) if (this.owns(machine.address)) this.#machines.set(machine.id, machine);
  }

  /**
   * Sets up the bridge, and everything for the machines that exist. Rejects with a HibernautError that says what the
   * host lacks, after removing what was set up until then.
   */
  static async open(options: BridgeOptions): Promise<BridgeNetwork> {
    if (process.getuid?.() !== 0)
      throw new HibernautError("failed_precondition", "The bridge network needs a platform that runs as root.");
    // Two platforms that start at once must not take the same subnet for free.
    const network = await withHostLock(SUBNETS_LOCK, () => BridgeNetwork.#setUp(options));
    network.#watch = setInterval(() => {
      network.#watching = network.#watchOver(options);
      background(network.#watching, "looking after the network");
    }, WATCH_MS).unref();
    return network;
  }

  static async #setUp(options: BridgeOptions): Promise<BridgeNetwork> {
    const { dataDir, subnet: setting, machines, judge } = options;
    const names = namesFor(dataDir);
    await removeOrphans(names);
    const selection = await selectSubnet({ dataDir, names, setting, machines, judge });
    const limits = await possibleLimits(options);
    const network = new BridgeNetwork(names, selection, { ...options, limits });
    try {
      await forwardPackets();
      await network.#sync();
      await network.#tryTap();
      return network;
    } catch (error) {
      // With machines, running guests may be using what exists.
      if (network.#machines.size === 0) await removeNetwork(names).catch(() => {});
      throw error;
    }
  }

  /** The host's address on the bridge: the guests' gateway and name server. */
  get gateway(): string {
    return addressOf(this.#subnet, GATEWAY_HOST);
  }

  /** The machines' subnet, as `a.b.c.d/n`. */
  get subnet(): string {
    return formatSubnet(this.#subnet);
  }

  /** Bridge and subnet, for people. */
  get description(): string {
    return `${this.#names.bridge} with ${formatSubnet(this.#subnet)}`;
  }

  /** Returns the next free address after a random one, so that a freed address is not reused at once. */
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
    const { id, app, address, egress } = machine;
    const { tap, mac } = this.#port(machine);
    await this.#egress.require(egress);
    if (!this.#has(machine) || !this.#ready.has(tap) || !(await hasLink(tap))) {
      this.#ready.delete(tap);
      await this.#change({ id, app, address, egress });
    }
    return { mode: "tap", mac, guest: this.#guest(address), device: tap };
  }

  requireRules(egress: Egress | undefined): Promise<void> {
    return this.#egress.require(egress);
  }

  async govern({ id, egress }: NetworkMachine): Promise<void> {
    await this.#egress.require(egress);
    const machine = this.#machines.get(id);
    if (machine === undefined) return; // its attachment brings them
    const next = { ...machine, egress };
    if (!this.#has(next)) return this.#change(next);
    // Someone else may have asked for the same, and the kernel may not have it yet.
    await this.#running.catch(() => {});
    if (this.#isUnsure) await this.#sync();
  }

  /** Whether the kernel has the machine like this, or is about to. */
  #has({ id, address, egress }: NetworkMachine): boolean {
    const known = this.#machines.get(id);
    return !this.#isUnsure && known?.address === address && isDeepStrictEqual(known.egress, egress);
  }

  /** Makes the kernel have the machine like this. If that fails, it is as it was. */
  async #change(next: NetworkMachine): Promise<void> {
    const before = this.#machines.get(next.id);
    this.#machines.set(next.id, next);
    this.#egress.changed(before, next);
    try {
      await this.#sync();
    } catch (error) {
      if (this.#machines.get(next.id) === next) {
        if (before === undefined) this.#machines.delete(next.id);
        else this.#machines.set(next.id, before);
        this.#egress.changed(next, before);
      }
      throw error;
    }
  }

  onChanged(listener: (machine: NetworkMachine) => void): void {
    this.#egress.onChanged = listener;
  }

  isControl(address: string, port: number): boolean {
    const { controlAddresses = [] } = this.#control;
    return controlAddresses.some((one) => one.address === address && one.port === port);
  }

  machineAt(address: string): NetworkMachine | undefined {
    return this.#egress.machineAt(address);
  }

  learn(machine: string, rules: Egress, answers: readonly Answered[]): Promise<boolean> {
    return this.#egress.learn(machine, rules, answers);
  }

  async judge(doors: Doors): Promise<void> {
    this.#egress.doors = doors;
    await this.#sync();
  }

  async detach(machineId: string): Promise<void> {
    const machine = this.#machines.get(machineId);
    if (machine === undefined) return;
    this.#machines.delete(machineId);
    this.#egress.changed(machine, undefined);
    await this.#sync();
  }

  /** Closes these ports to machines from now on, and no others. */
  async protect(control: Pick<BridgeOptions, "controlPorts" | "controlAddresses">): Promise<void> {
    this.#control = control;
    await this.#sync();
  }

  /** Limits what clients open at these TCP ports of the host from now on, and at no others. */
  async offer(ports: readonly number[]): Promise<void> {
    this.#clientPorts = ports;
    await this.#sync();
  }

  /** How many first packets of connections were dropped, because their client opened too many. */
  dropped(): Promise<number> {
    return readCounter("inet", this.#names.clientTable, DROPPED);
  }

  /** Leads connections of machines to these ports of apps' own addresses from now on, and to no others. */
  async lead(ways: readonly Way[]): Promise<void> {
    const before = this.#ways;
    this.#ways = ways;
    try {
      await this.#sync();
    } catch (error) {
      // Machines must be able to come and go, whatever is wrong with these.
      if (this.#ways === ways) this.#ways = before;
      throw error;
    }
  }

  /** Stops watching. Everything stays in place, because guests keep running. */
  async close(): Promise<void> {
    clearInterval(this.#watch);
    // It would set up again what is removed after this.
    await this.#watching?.catch(() => {});
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
        `${address} is not in ${formatSubnet(this.#subnet)}, the machines' subnet. Stop machine ${id} and start it again to give it a new address.`,
      );
    }
    return { tap: tapName(this.#names, host), mac: macOf(id), address, group: this.#groupOf(app) };
  }

  /** Applies the wanted state. One run at a time; calls that come while a run is queued share it. */
  #sync(): Promise<void> {
    this.#queued ??= this.#applyAfter(this.#running);
    this.#running = this.#queued;
    return this.#running;
  }

  async #applyAfter(before: Promise<void>): Promise<void> {
    await before.catch(() => {}); // the caller of that run got the error
    this.#queued = undefined;
    try {
      await this.#apply();
      this.#isUnsure = false;
    } catch (error) {
      this.#isUnsure = true;
      throw error;
    }
  }

  /** Creates, changes and removes whatever differs. Rules come first: a tap that no rule mentions cannot send. */
  async #apply(): Promise<void> {
    const names = this.#names;
    const ports = [...this.#machines.values()].map((machine) => this.#port(machine));
    const { controlPorts, controlAddresses = [] } = this.#control;
    const [subnet, blocked] = [this.#subnet, this.#blocked];
    const ways = this.#ways;
    const rules = rulesetOf({ names, subnet, ports, ways, controlPorts, controlAddresses, blocked });
    const limits = `${flowTable(names, this.#limits)}${clientTable(names, this.#clients, this.#clientPorts)}`;
    await this.#egress.apply(`${rules}${limits}`, ports);
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

  /** Rejects when the host cannot make taps: /dev/net/tun may be missing in a container. */
  async #tryTap(): Promise<void> {
    const trial = tapName(this.#names, 0);
    await ip([...newTap(trial), `link delete dev ${trial}`]);
  }

  async #watchOver({ onTrouble, onRefused }: BridgeOptions): Promise<void> {
    await this.#repair(onTrouble);
    try {
      const refused = await this.#egress.refused();
      if (refused.length > 0) onRefused?.(refused);
    } catch (error) {
      onTrouble?.(`what machines were kept from connecting to cannot be read: ${String(error)}`);
    }
  }

  async #repair(onTrouble: BridgeOptions["onTrouble"]): Promise<void> {
    try {
      const { table, flowTable: flows, clientTable: clients } = this.#names;
      const own = [`bridge ${table}`, ...[table, flows, clients].map((name) => `inet ${name}`)];
      if ((await hasTables([...own, ...this.#egress.tables()])) && (await hasLink(this.#names.bridge))) return;
      this.#egress.forgotten();
      await this.#sync();
      onTrouble?.("another program removed the rules or the bridge of the machines' network; they were set up again");
    } catch (error) {
      onTrouble?.(`the machines' network cannot be repaired: ${String(error)}`);
    }
  }
}

/** Returns the limits that this host's kernel can keep. */
async function possibleLimits({ limits = NO_LIMITS, onTrouble }: BridgeOptions): Promise<FlowLimits> {
  if (limits.connections === 0 || (await acceptsRuleset(FLOW_PROBE))) return limits;
  onTrouble?.(
    "this host's kernel cannot count connections (nf_conncount, NFT_CONNLIMIT), so one machine can fill its table of connections: HIBERNAUT_NETWORK_CONNECTIONS has no effect",
  );
  return { ...limits, connections: 0 };
}
