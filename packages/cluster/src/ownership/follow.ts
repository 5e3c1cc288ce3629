/** Gives up machines as soon as this host hears that they are another host's, and takes in those that it got. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Resources, VolumeElsewhere } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import type { Changed } from "../contract.ts";
import { KEYS, nameOf, type OwnerRecord } from "../keys.ts";
import { find } from "./claims.ts";
import type { Disputes } from "./disputes.ts";
import type { StartGate } from "./gate.ts";
import { Looks } from "./looks.ts";
import type { Publications } from "./publications.ts";
import { untilDone, type WarnLog } from "./retry.ts";
import { completeClaim, settled } from "./settle.ts";
import { readRaised, readVolumesElsewhere, volumesElsewhere } from "./volumes.ts";

/**
 * How often all machines are compared with this host's copy of the directory, in milliseconds. It costs no request, and finds
 * what changed while a machine was on its way into the store.
 */
const SWEEP_MS = 10_000;

/** The machines' code that takes machines in and gives them up. */
export type Custodian = Resources["custody"];

/** Makes a machine that is this host's this host's in fact. Resolves with false when there is nothing to make it from. */
export type TakeIn = (id: string) => Promise<boolean>;

interface FollowContext {
  cluster: Cluster;
  gate: StartGate;
  disputes: Disputes;
  departing: ReadonlySet<string>;
  publications: Pick<Publications, "publish" | "forget">;
  custodian: Custodian;
  log: WarnLog;
  signal: AbortSignal;
  /** The machine is this host's, and nothing of it is here. */
  takeIn: TakeIn | undefined;
  /** Gives back a claim whose epoch is not above this one. */
  untilReleased(id: string, upTo: number): void;
}

/**
 * Follows the owners until the signal is aborted: each change, and all of them at the beginning of each lease and now and
 * then. Returns how to compare one machine.
 */
export function follow(context: FollowContext): (id: string) => void {
  const { log, signal, cluster } = context;
  const { view, lease } = cluster;
  const follower = new Follower(context);
  const what = "comparing machines with the cluster";
  const compare = () =>
    background(
      untilDone(() => follower.compare(), { what, log, signal }),
      what,
    );
  const unsubscribe = view.subscribe(KEYS.machines, (changes) => follower.changed(changes));
  let { term } = lease;
  const unsubscribeLease = lease.subscribe(() => {
    if (lease.state !== "live" || lease.term === term) return;
    term = lease.term;
    compare();
  });
  const sweep = setInterval(() => follower.sweep(), SWEEP_MS).unref();
  signal.addEventListener("abort", () => {
    clearInterval(sweep);
    unsubscribe();
    unsubscribeLease();
  });
  compare();
  return (id) => follower.look(id);
}

class Follower {
  readonly #context: FollowContext;
  readonly #looks: Looks;
  /** Owners of which this host has heard, and which are newer than its copies: nothing has to be asked any more. */
  readonly #heard = new Map<string, OwnerRecord>();
  /** Machines that ran when they became disputed. */
  readonly #ran = new Set<string>();

  constructor(context: FollowContext) {
    this.#context = context;
    const { log, signal } = context;
    this.#looks = new Looks({ look: (id) => this.#look(id), log, signal });
  }

  /** Compares everything. Rejects while the directory does not answer. */
  async compare(): Promise<void> {
    const { cluster, custodian, gate } = this.#context;
    const owners = await gate.read();
    for (const record of custodian.records()) this.#compare(record, owners.get(record.id));
    for (const [id, { host }] of owners) if (host === cluster.host && !custodian.stores(id)) this.#looks.at(id);
  }

  /** Compares what is stored here with the copy of the directory. */
  sweep(): void {
    const { cluster, custodian } = this.#context;
    const { view, lease } = cluster;
    if (view.staleSince !== undefined || lease.state !== "live") return;
    for (const record of custodian.records()) this.#compare(record, view.owner(record.id));
  }

  look(id: string): void {
    this.#looks.at(id);
  }

  /** What is this host's as it is stored here is known to others, too, also if it came here or changed in a last moment. */
  #compare(record: MachineRecord, owner: OwnerRecord | undefined): void {
    if (this.#isPlain(record, owner)) this.#context.publications.publish(record);
    else this.look(record.id);
  }

  changed(changes: readonly Changed[]): void {
    const { cluster, custodian, gate, publications } = this.#context;
    for (const { key, value } of changes) {
      const id = nameOf(key);
      const record = custodian.record(id);
      const owner = value === null ? undefined : (JSON.parse(value) as OwnerRecord);
      if (owner?.host === cluster.host) {
        if (record === undefined || owner.epoch >= (record.epoch ?? 0)) gate.add(id, owner.epoch);
        const isPlain = record === undefined ? custodian.stores(id) : record.epoch === owner.epoch;
        if (!isPlain || owner.evacuated !== undefined) this.#looks.at(id);
        continue;
      }
      publications.forget(id);
      if (record !== undefined) {
        const isNewer = isNewerThan(record, owner);
        if (isNewer) this.#heard.set(id, owner);
        this.#looks.at(id, { urgent: isNewer });
      }
    }
  }

  /** Resolves with false when it has to be looked at again later. */
  async #look(id: string): Promise<boolean> {
    const { cluster, custodian, disputes } = this.#context;
    // The record first: what is read after it is not older.
    const record = custodian.record(id);
    const told = this.#heard.get(id);
    this.#heard.delete(id);
    if (record === undefined) {
      disputes.end(id);
      this.#ran.delete(id); // its copy here was dropped
      return this.#lookForAbsent(id);
    }
    if (this.#isLeaving(id)) return true;
    const isTold = isNewerThan(record, told);
    const found = isTold ? { owner: told } : await find(id, cluster.directory);
    if (this.#isLeaving(id)) return true;
    const { owner } = found;
    let one = settled(record, found, cluster.host);
    const isClaimed = one === "claim";
    if (one === "claim") one = await completeClaim(record, { ...this.#contextOf(), volumes: custodian.volumes(id) });
    if (one.kind !== "unknown") {
      disputes.end(id);
      if (one.kind === "elsewhere") await this.#giveUp(record, owner, await this.#volumesElsewhere(record, isTold));
      else await this.#own(record, one.record, isClaimed);
      return true;
    }
    disputes.begin(id, one.why ?? "");
    // Stored before anything else, because the older copy may get a newer epoch than this one at any time.
    if (owner === undefined) return false;
    custodian.disputed(id);
    // Also if it takes several looks until it rests.
    if (record.state === "running") this.#ran.add(id);
    // Another host may run it: not both.
    if (await custodian.setAside(id, `the cluster directory gives it to host ${owner.host}`)) this.#ran.add(id);
    // A change of the owner is heard of.
    return true;
  }

  #isPlain({ epoch, address }: MachineRecord, owner: OwnerRecord | undefined): boolean {
    if (owner?.host !== this.#context.cluster.host) return false;
    return owner.epoch === epoch && owner.address === address && owner.evacuated === undefined;
  }

  /** One that is destroyed gives its claim back itself, and one that is moved away is given up by its move. */
  #isLeaving(id: string): boolean {
    const { custodian, departing } = this.#context;
    const state = custodian.record(id)?.state;
    return state === undefined || state === "destroying" || departing.has(id);
  }

  #contextOf() {
    const { cluster, gate, custodian } = this.#context;
    return { cluster, gate, another: (taken: ReadonlySet<string>) => custodian.anotherAddress(taken) };
  }

  async #own(before: MachineRecord, claimed: MachineRecord, isClaimed: boolean): Promise<void> {
    const { gate, custodian, cluster, log } = this.#context;
    const { id, epoch, address } = claimed;
    gate.add(id, epoch ?? 0);
    const isSame = before.epoch === epoch && before.address === address && before.disputed !== true;
    if (isClaimed || !isSame)
      custodian.owned(id, claimed, await readRaised(claimed.app, custodian.volumes(id), cluster));
    if (!this.#ran.delete(id)) return;
    try {
      custodian.start(id, "dispute");
    } catch (error) {
      log.warn({ machine: id, reason: messageOf(error) }, "a machine that was set aside did not start again");
    }
  }

  /** A volume's new host is stored together with its machine's, which the view has adopted when this host hears of it. */
  async #volumesElsewhere(record: MachineRecord, isTold: boolean): Promise<VolumeElsewhere[]> {
    const { host, view, directory } = this.#context.cluster;
    if (isTold) return volumesElsewhere(record, host, (key) => view.value(key));
    return readVolumesElsewhere(record, host, directory);
  }

  async #giveUp(
    { id }: MachineRecord,
    owner: OwnerRecord | undefined,
    volumes: readonly VolumeElsewhere[],
  ): Promise<void> {
    const { gate, custodian, cluster } = this.#context;
    const isBack = owner?.host === cluster.host;
    if (!isBack) gate.remove(id);
    this.#ran.delete(id);
    const reason = owner === undefined ? "it was destroyed in the cluster" : `host ${owner.host} owns it now`;
    const host = isBack ? undefined : owner?.host;
    await custodian.takeAway({ id, host, epoch: owner?.epoch ?? 0, volumes, reason, keep: true });
    if (isBack) await this.#lookForAbsent(id);
  }

  /** A machine of which nothing is here: if it is this host's, it is taken in, or its claim is given back. */
  async #lookForAbsent(id: string): Promise<boolean> {
    const { cluster, custodian, publications, untilReleased, takeIn } = this.#context;
    const { owner } = await find(id, cluster.directory);
    if (owner?.host !== cluster.host || custodian.stores(id)) return true;
    if (await takeIn?.(id)) {
      const taken = custodian.record(id);
      if (taken !== undefined) publications.publish(taken);
      return true;
    }
    // Destroyed here, or never stored, and the claim was not given back, or took effect after everybody had given it up.
    if (!custodian.stores(id)) untilReleased(id, owner.epoch);
    return true;
  }
}

function isNewerThan({ epoch = 0 }: MachineRecord, owner: OwnerRecord | undefined): owner is OwnerRecord {
  return owner !== undefined && owner.epoch > epoch;
}
