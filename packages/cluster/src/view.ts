/** This host's copy of the cluster's directory: one watch keeps it up to date, and reads are synchronous. */
import { setTimeout as delay } from "node:timers/promises";
import { abortable } from "@hibernaut/lib/async";
import type { ClusterHost, Owned, View } from "./cluster.ts";
import { type Changed, type Directory, HistoryGone } from "./contract.ts";
import { Entries } from "./entries.ts";
import {
  type HostRecord,
  KEYS,
  type MemberRecord,
  type MoveRecord,
  nameOf,
  type PublishedMachine,
  ROOT,
} from "./keys.ts";

/** After the first failure of the watch. It doubles with each further one. */
const FIRST_RETRY_MS = 50;
/** A directory that answers again is noticed after this time. */
const MAX_RETRY_MS = 2000;

interface ViewOptions {
  directory: Directory;
  /** Is told when the watch is lost, and of what a listener throws. Default: nobody. */
  onFault?(error: unknown, what: string): void;
}

interface Subscription {
  prefix: string;
  listener(changes: readonly Changed[]): void;
}

interface Waiting {
  revision: number;
  resolve(): void;
}

export class DirectoryView implements View {
  readonly #directory: Directory;
  readonly #onFault: (error: unknown, what: string) => void;
  readonly #entries = new Entries();
  readonly #subscriptions = new Set<Subscription>();
  readonly #waiting = new Set<Waiting>();
  readonly #closing = new AbortController();
  #following: Promise<void> | undefined;
  #revision = 0;
  #staleSince: number | undefined = performance.now();

  constructor({ directory, onFault = () => {} }: ViewOptions) {
    this.#directory = directory;
    this.#onFault = onFault;
  }

  /** Begins to follow the directory. The view is empty until the directory has answered: see {@link reached}. */
  start(): void {
    this.#following ??= this.#follow(this.#closing.signal);
  }

  /** Ends the watch. Callers that wait for a revision wait until their own signal is aborted. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#following;
  }

  get revision(): number {
    return this.#revision;
  }

  get staleSince(): number | undefined {
    return this.#staleSince;
  }

  hosts(): ClusterHost[] {
    return this.under(KEYS.members).map(({ key, value }) => this.#host(nameOf(key), value as MemberRecord));
  }

  host(name: string): ClusterHost | undefined {
    const member = this.value(`${KEYS.members}${name}`) as MemberRecord | undefined;
    return member && this.#host(name, member);
  }

  owner(machineId: string): Owned | undefined {
    return this.#entries.owner(machineId);
  }

  machines(app?: string): Owned[] {
    return [...this.#entries.owners(app).values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  state(machineId: string): PublishedMachine | undefined {
    const state = this.value(`${KEYS.states}${machineId}`) as PublishedMachine | undefined;
    return state?.epoch === this.owner(machineId)?.epoch ? state : undefined;
  }

  move(machineId: string): MoveRecord | undefined {
    return this.value(`${KEYS.moves}${machineId}`) as MoveRecord | undefined;
  }

  value(key: string): unknown {
    return this.#entries.get(key)?.value;
  }

  under(prefix: string): { key: string; value: unknown; revision: number }[] {
    return this.#entries.under(prefix);
  }

  subscribe(prefix: string, listener: (changes: readonly Changed[]) => void): () => void {
    const subscription = { prefix, listener };
    this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }

  async reached(revision: number, signal?: AbortSignal): Promise<void> {
    if (this.#revision >= revision) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = { revision, resolve };
    this.#waiting.add(waiting);
    try {
      await (signal === undefined ? promise : abortable(promise, signal));
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  #host(name: string, member: MemberRecord): ClusterHost {
    return { name, member, up: this.value(`${KEYS.hosts}${name}`) as HostRecord | undefined };
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let wait = FIRST_RETRY_MS;
    let listed = false;
    while (!signal.aborted) {
      try {
        if (!listed) await this.#list(signal);
        listed = true;
        for await (const changes of this.#directory.watch(ROOT, this.#revision, signal)) {
          wait = FIRST_RETRY_MS;
          this.#staleSince = undefined;
          this.#adopt(changes, changes.at(-1)?.revision ?? this.#revision);
        }
      } catch (error) {
        if (signal.aborted) return;
        listed &&= !(error instanceof HistoryGone);
        this.#staleSince ??= performance.now();
        this.#onFault(error, "the watch of the cluster directory was lost");
        await delay(wait, undefined, { signal, ref: false }).catch(() => {}); // aborted: the loop ends
        wait = Math.min(wait * 2, MAX_RETRY_MS);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { entries, revision } = await this.#directory.list(ROOT, signal);
    this.#adopt(this.#entries.difference(entries, revision), revision);
  }

  #adopt(changes: readonly Changed[], revision: number): void {
    const adopted = changes.filter((change) => this.#attempt(() => this.#entries.adopt(change), change.key));
    this.#revision = revision;
    for (const { prefix, listener } of this.#subscriptions) {
      const theirs = adopted.filter(({ key }) => key.startsWith(prefix));
      if (theirs.length > 0) this.#attempt(() => listener(theirs), prefix);
    }
    for (const waiting of this.#waiting) if (waiting.revision <= revision) waiting.resolve();
  }

  /** One value that nobody can read, or one listener that fails, must not keep the others from what changed. */
  #attempt(work: () => void, what: string): boolean {
    try {
      work();
      return true;
    } catch (error) {
      this.#onFault(error, `a change of ${what} in the cluster directory was not adopted`);
      return false;
    }
  }
}
