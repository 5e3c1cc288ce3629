/** Watches of clients that ask for events now and then, because they cannot hold a stream open. */
import { randomUUID } from "node:crypto";
import { background } from "@hibernaut/lib/background";
import { Refusal } from "../failure.ts";
import type { Files } from "./files.ts";
import { MOST_WAITING_EVENT_BYTES, MOST_WATCHERS, WATCHER_IDLE_MS } from "./limits.ts";
import type { FilesystemEvent } from "./protocol/files_pb.ts";
import type { WatchedEvent } from "./watch-reader.ts";

interface Watcher {
  machine: string;
  events: FilesystemEvent[];
  /** Of all events that wait. */
  bytes: number;
  controller: AbortController;
  idle: NodeJS.Timeout;
}

export class Watchers {
  readonly #watchers = new Map<string, Watcher>();

  /** Begins to collect what happens in a directory. Returns by what to ask for it. */
  async create(
    machine: string,
    files: Files,
    path: string,
    options: { recursive: boolean; entries: boolean },
  ): Promise<string> {
    const mine = [...this.#watchers.values()].filter((one) => one.machine === machine);
    if (mine.length >= MOST_WATCHERS)
      throw new Refusal(429, `The sandbox has ${MOST_WATCHERS} watchers already. Remove one.`);
    const controller = new AbortController();
    const id = randomUUID();
    // One that has ended by itself is found until nobody has asked for it any more.
    const idle = setTimeout(() => this.#end(id), WATCHER_IDLE_MS);
    idle.unref();
    const watcher = { machine, events: [], bytes: 0, controller, idle };
    this.#watchers.set(id, watcher);
    try {
      const events = await files.watch(path, options, controller.signal);
      background(collect(events, watcher), "a watch of a sandbox's files");
    } catch (error) {
      this.#end(id);
      throw error;
    }
    return id;
  }

  /** Returns what happened since it was last asked. */
  take(machine: string, id: string): FilesystemEvent[] {
    const watcher = this.#require(machine, id);
    watcher.idle.refresh();
    watcher.bytes = 0;
    return watcher.events.splice(0);
  }

  remove(machine: string, id: string): void {
    this.#require(machine, id);
    this.#end(id);
  }

  #require(machine: string, id: string): Watcher {
    const watcher = this.#watchers.get(id);
    if (watcher?.machine === machine) return watcher;
    throw new Refusal(404, `There is no watcher ${id.slice(0, 80)}.`);
  }

  #end(id: string): void {
    const watcher = this.#watchers.get(id);
    if (watcher === undefined) return;
    this.#watchers.delete(id);
    clearTimeout(watcher.idle);
    watcher.controller.abort();
  }
}

/** What is too much is dropped, the oldest first: the client can look at the files. */
async function collect(events: AsyncIterable<WatchedEvent>, watcher: Watcher): Promise<void> {
  for await (const { event, bytes } of events) {
    watcher.bytes += bytes;
    if (watcher.bytes > MOST_WAITING_EVENT_BYTES) {
      watcher.events.splice(0, Math.ceil(watcher.events.length / 2));
      watcher.bytes /= 2;
    }
    watcher.events.push(event);
  }
}
