/**
 * Which machines this host may start. All owners are read once in each term of its lease: while the lease lives, nobody
 * else takes a machine from this host, so what was read stays true.
 */
import { HibernautError } from "@hibernaut/domain/errors";
import { abortable, within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { Cluster } from "../cluster.ts";
import { KEYS, nameOf, type OwnerRecord } from "../keys.ts";
import { ownerOf } from "./claims.ts";

/** How long a start waits for the directory, in milliseconds. A request waits for the start. */
const ANSWER_MS = 5_000;
/** For how long a directory that did not answer counts as away, in milliseconds: not every start waits for it. */
const AWAY_MS = 1_000;
/** What a client waits before it asks again, in seconds: a lease is back within two of its renewals. */
const RETRY_S = 5;

/** All owners, as the directory had them at one moment. */
type Owners = ReadonlyMap<string, OwnerRecord>;

export class StartGate {
  readonly #cluster: Pick<Cluster, "directory" | "host" | "lease" | "view">;
  /** The machines that are this host's, with their epochs, and the term in which that was read. */
  #own: { term: number; epochs: Map<string, number> } | undefined;
  #reading: Promise<Owners> | undefined;
  /** What changed while the owners are being read: an epoch, or null for a machine that was given away. */
  readonly #meanwhile = new Map<string, number | null>();
  #away: { until: number; reason: string } | undefined;

  constructor(cluster: Pick<Cluster, "directory" | "host" | "lease" | "view">) {
    this.#cluster = cluster;
  }

  /** Why the machine may not start, as far as this host knows; see {@link Ownership.refusal}. */
  refusal(id: string): HibernautError | undefined {
    const { lease } = this.#cluster;
    if (lease.state === "lost") return unavailable(id, "this host has been without its cluster for longer than it may");
    if (this.#own?.term === lease.term) return this.#own.epochs.has(id) ? undefined : elsewhere(id, this.#cluster.host);
    if (lease.state === "grace") return unavailable(id, "this host has not read yet which machines are its own");
    if (this.#away !== undefined && performance.now() < this.#away.until) return unavailable(id, this.#away.reason);
    return undefined;
  }

  /**
   * The same, after the owners were read if they were not in this term. Without a lease, what was read may be wrong by now: a
   * directory that seems to answer is asked again.
   */
  async verify(id: string, signal: AbortSignal): Promise<HibernautError | undefined> {
    const { lease, host, view } = this.#cluster;
    const known = this.refusal(id);
    if (known !== undefined) return known;
    const isCurrent = this.#own?.term === lease.term;
    if (isCurrent && (lease.state === "live" || view.staleSince !== undefined)) return undefined;
    try {
      const owners = await abortable(this.read(), within(signal, ANSWER_MS, "the answer of the cluster directory"));
      if (isCurrent && owners.get(id)?.host !== host) return elsewhere(id, host);
    } catch (error) {
      signal.throwIfAborted();
      this.#away = { until: performance.now() + AWAY_MS, reason: messageOf(error) };
    }
    return this.refusal(id);
  }

  /** Reads all owners. Rejects with `unavailable` when the directory does not answer. */
  read(): Promise<Owners> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** The machine is this host's from now on. */
  add(id: string, epoch: number): void {
    this.#own?.epochs.set(id, epoch);
    if (this.#reading !== undefined) this.#meanwhile.set(id, epoch);
  }

  /** The machine is no longer this host's. */
  remove(id: string): void {
    this.#own?.epochs.delete(id);
    if (this.#reading !== undefined) this.#meanwhile.set(id, null);
  }

  async #read(): Promise<Owners> {
    const { directory, lease, host } = this.#cluster;
    const { term } = lease;
    this.#meanwhile.clear();
    const { entries } = await directory.list(KEYS.machines);
    const owners = new Map(entries.map((entry) => [nameOf(entry.key), ownerOf(entry)]));
    const epochs = new Map([...owners].flatMap(([id, owner]) => (owner.host === host ? [[id, owner.epoch]] : [])));
    // The answer may be older than these.
    for (const [id, epoch] of this.#meanwhile)
      if (epoch === null) epochs.delete(id);
      else epochs.set(id, epoch);
    // A lease that ended meanwhile proves nothing about what was read.
    if (lease.term === term && lease.state === "live") {
      this.#own = { term, epochs };
      this.#away = undefined;
    }
    return owners;
  }
}

function unavailable(id: string, why: string): HibernautError {
  return new HibernautError(
    "unavailable",
    `Machine ${id} cannot start now: ${why}. It starts once the cluster directory answers; see \`hibernaut cluster status\`.`,
    { machine_id: id, retry_after_s: RETRY_S },
  );
}

/** The error for a machine that the host does not own. */
export function elsewhere(id: string, host: string): HibernautError {
  const message = `Machine ${id} is no longer on host ${host}. Ask again: any host knows the new one.`;
  return new HibernautError("moved", message, { machine_id: id });
}
