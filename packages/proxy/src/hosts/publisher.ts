/**
 * Tells the other hosts about this host's machines: their states, where requests reach them, and roughly how busy they
 * are. To the coordinator it is one more proxy, which never has anything open.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Change, Cluster, Condition } from "@hibernaut/cluster";
import { KEYS, nameOf, type PublishedMachine } from "@hibernaut/cluster/keys";
import { messageOf } from "@hibernaut/lib/text";
import type { FromProxy, TableMachine, ToProxy } from "../messages.ts";
import { LoadPeaks } from "./load-peaks.ts";
import { routeOf } from "./remote-rows.ts";

/** What happens within this time is written together, in milliseconds: a wake changes a machine several times. */
const GATHER_MS = 10;
/** How many machines one transaction is about. etcd takes up to 128 operations. */
const MOST_AT_ONCE = 50;
/** The pauses while the directory cannot be written, in milliseconds. */
const RETRY_MS = { first: 200, last: 5_000 };

interface PublisherOptions {
  cluster: Pick<Cluster, "host" | "view" | "directory">;
  log: { warn(fields: object, message: string): void };
}

export class Publisher {
  readonly #cluster: PublisherOptions["cluster"];
  readonly #log: PublisherOptions["log"];
  readonly #rows = new Map<string, TableMachine>();
  /** What this host wrote last, as JSON, by machine. The view may not have it yet. */
  readonly #written = new Map<string, string>();
  /** Machines about which something may have to be written. What that is, is decided when it is written. */
  readonly #dirty = new Set<string>();
  readonly #loads: LoadPeaks = new LoadPeaks((id) => this.#mark(id));
  readonly #end = new AbortController();
  readonly #unsubscribes: (() => void)[];
  #writing: Promise<void> | undefined;
  #send: (message: FromProxy) => void = () => {};

  constructor({ cluster, log }: PublisherOptions) {
    this.#cluster = cluster;
    this.#log = log;
    const { view } = cluster;
    this.#unsubscribes = [
      // A machine was claimed, moved here, or got another epoch.
      view.subscribe(KEYS.machines, (changes) => {
        for (const { key } of changes) this.#mark(nameOf(key));
      }),
      // A directory that was restored from a backup has lost what was written.
      view.subscribe(KEYS.states, (changes) => {
        for (const { key, value } of changes) if (value === null) this.#lost(nameOf(key));
      }),
    ];
  }

  /** Connects it to the coordinator. */
  connect(connect: (send: (message: ToProxy) => void) => { receive(message: FromProxy): void; close(): void }): void {
    // As over a socket, messages arrive later: the sender is in the middle of something.
    const proxy = connect((message) => queueMicrotask(() => this.#receive(message)));
    this.#send = (message) => proxy.receive(message);
    this.#unsubscribes.push(() => proxy.close());
  }

  /** Stops at once. What was not written is written at the next start. */
  async close(): Promise<void> {
    this.#end.abort(new Error("The platform is closing."));
    this.#loads.close();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await this.#writing;
  }

  #receive(message: ToProxy): void {
    switch (message.kind) {
      case "table":
        for (const row of message.machines) this.#put(row);
        return;
      case "machine":
        return this.#put(message.machine);
      case "gone":
        this.#rows.delete(message.id);
        this.#loads.delete(message.id);
        return this.#mark(message.id);
      case "others":
        for (const [id, load] of Object.entries(message.loads)) this.#loadChanged(id, load);
        return;
      case "drain":
        return this.#send({ kind: "drained", question: message.question, agreed: true });
      case "challenges":
        return this.#send({ kind: "noted", question: message.question });
      // What only proxies need, or what a state says in a moment.
      case "draining":
      case "hostnames":
      case "undrain":
      case "wake_failed":
    }
  }

  #put(row: TableMachine): void {
    this.#rows.set(row.id, row);
    this.#mark(row.id);
  }

  #lost(id: string): void {
    this.#written.delete(id);
    this.#mark(id);
  }

  #loadChanged(id: string, load: number): void {
    const policy = this.#rows.get(id)?.policy;
    if (policy) this.#loads.set(id, load, policy.softLimit);
  }

  #mark(id: string): void {
    if (!this.#rows.has(id) && !this.#written.has(id)) return;
    this.#dirty.add(id);
    if (this.#end.signal.aborted) return;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Writes until there is nothing left to write. While the directory is away, the latest value of each machine waits. */
  async #writeAll(): Promise<void> {
    const { signal } = this.#end;
    let pauseMs = RETRY_MS.first;
    let most = MOST_AT_ONCE;
    while (this.#dirty.size > 0 && !signal.aborted) {
      await delay(GATHER_MS, undefined, { signal }).catch(() => {});
      const batch = [...this.#dirty].slice(0, most);
      for (const id of batch) this.#dirty.delete(id);
      try {
        const agreed = signal.aborted || (await this.#write(batch, signal));
        // Another host may own one of them since a moment: alone, the others do not fail with it.
        if (!agreed && batch.length > 1) for (const id of batch) this.#dirty.add(id);
        most = agreed ? MOST_AT_ONCE : 1;
        pauseMs = RETRY_MS.first;
      } catch (error) {
        for (const id of batch) this.#dirty.add(id);
        if (signal.aborted) return;
        this.#log.warn({ reason: messageOf(error), retry_ms: pauseMs }, "the states of machines are not published");
        await delay(pauseMs, undefined, { signal }).catch(() => {});
        pauseMs = Math.min(pauseMs * 2, RETRY_MS.last);
      }
    }
  }

  /** Resolves with false if the owner of a machine has changed in the meantime. */
  async #write(ids: readonly string[], signal: AbortSignal): Promise<boolean> {
    const { directory, view, host } = this.#cluster;
    const conditions: Condition[] = [];
    const changes: Change[] = [];
    for (const id of ids) {
      const owner = view.owner(id);
      const row = this.#rows.get(id);
      const key = `${KEYS.states}${id}`;
      // What another host owns, it publishes.
      if (owner !== undefined && owner.host !== host) {
        this.#written.delete(id);
        continue;
      }
      // Not claimed yet.
      if (owner === undefined && row !== undefined) continue;
      const value = owner === undefined || row === undefined ? null : this.#valueOf(row, owner.epoch);
      if (value === this.#known(id, key)) continue;
      conditions.push({ key: `${KEYS.machines}${id}`, revision: owner?.revision ?? 0 });
      changes.push({ key, value });
    }
    if (changes.length === 0) return true;
    if ((await directory.transact(conditions, changes, signal)) === undefined) return false;
    for (const { key, value } of changes)
      if (value === null) this.#written.delete(nameOf(key));
      else this.#written.set(nameOf(key), value);
    return true;
  }

  #valueOf(row: TableMachine, epoch: number): string {
    const { id, state } = row;
    const published: PublishedMachine = { epoch, state, route: routeOf(row), load: this.#loads.told(id) };
    return JSON.stringify(published);
  }

  /** What the directory has, as JSON. Null if nothing. */
  #known(id: string, key: string): string | null {
    const written = this.#written.get(id);
    if (written !== undefined) return written;
    const value = this.#cluster.view.value(key);
    return value === undefined ? null : JSON.stringify(value);
  }
}
