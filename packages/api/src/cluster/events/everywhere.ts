/** The stream of events of all hosts, as any of them tells it. */
import type { PeerClient, View } from "@hibernaut/cluster";
import { KEYS } from "@hibernaut/cluster/keys";
import { type EventStream, type StreamFilter, serverSent, textOf } from "@hibernaut/events";
import { Feeds } from "./feed.ts";
import {
  type HostStart,
  type Item,
  type News,
  ownHistory,
  ownNews,
  type PeerEvents,
  peerHistory,
  peerNews,
  type Wanted,
} from "./host-events.ts";
import { Confluence, sorted } from "./merge.ts";
import { askPeer } from "./peer-stream.ts";
import { type Positions, positionsOf, positionsText } from "./positions.ts";

/** How long a reader waits for the other hosts before it begins without them, in milliseconds. */
const BEGIN_MS = 2000;
/** Past events that are sent at a time. */
const BLOCK = 100;

interface EverywhereDeps {
  host: string;
  view: Pick<View, "hosts" | "host" | "subscribe">;
  client: PeerClient;
  stream: EventStream;
}

/** What a client asks for. */
export interface Asked {
  /** For this host. */
  filter: StreamFilter;
  /** Of the client's token, now. */
  reach: Wanted["reach"];
  /** A position, or a number of this host. */
  since: string | undefined;
  tail: number | undefined;
  follow: boolean;
}

export class EventsEverywhere {
  readonly #deps: EverywhereDeps;
  readonly #feeds: Feeds;

  constructor(deps: EverywhereDeps) {
    this.#deps = deps;
    const all = { follow: true, filter: { types: [] } };
    this.#feeds = new Feeds((host) => (since, signal) => askPeer(deps.client, host, { ...all, since }, signal));
  }

  /** Yields server-sent events, each with the position after it. Ends when the signal is aborted, or without `follow`. */
  async *read(asked: Asked, given: AbortSignal): AsyncGenerator<string, void> {
    const { host, view } = this.#deps;
    const end = new AbortController();
    const signal = AbortSignal.any([given, end.signal]);
    const hosts = view.hosts().map(({ name }) => name);
    const positions = asked.since === undefined ? new Map() : positionsOf(asked.since, { own: host, hosts });
    const missing = new Set<string>();
    try {
      // Connected before the past is read, so that nothing is lost in between.
      using reading = new Reading(asked, { ...this.#deps, feeds: this.#feeds, positions, missing, signal });
      if (asked.follow) await reading.connect(hosts);
      if (asked.since !== undefined) yield reading.here();
      yield* reading.past(hosts);
      yield reading.here() + reading.whoIsMissing();
      if (asked.follow) yield* reading.news(hosts);
    } finally {
      end.abort();
    }
  }
}

interface ReadingDeps extends EverywhereDeps {
  feeds: Feeds;
  positions: Positions;
  missing: Set<string>;
  signal: AbortSignal;
}

/** What one client reads. */
class Reading implements Disposable {
  readonly #asked: Asked;
  readonly #deps: ReadingDeps;
  readonly #taken = new DisposableStack();
  /** The hosts whose past could not be read to its end. */
  readonly #unread = new Set<string>();

  constructor(asked: Asked, deps: ReadingDeps) {
    this.#asked = asked;
    this.#deps = deps;
  }

  [Symbol.dispose](): void {
    this.#taken.dispose();
  }

  /** The position alone. */
  here(): string {
    return `id: ${positionsText(this.#deps.positions)}\n\n`;
  }

  /** Nothing when everybody is heard. */
  whoIsMissing(): string {
    return this.#deps.missing.size > 0 ? this.#missingText() : "";
  }

  /** Resolves once every other host is heard or has failed, after 2 s at the latest. */
  async connect(hosts: readonly string[]): Promise<void> {
    const { host, feeds, signal } = this.#deps;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(BEGIN_MS)]);
    const connectOne = async (name: string) => {
      const { feed } = this.#taken.use(feeds.take(name));
      while (feed.state === "connecting" && !limit.aborted) await feed.changed(limit);
      if (feed.at !== undefined && !this.#isBehind()) this.#deps.positions.set(name, feed.at);
      if (feed.state !== "connected") this.#deps.missing.add(name);
    };
    await Promise.all(hosts.filter((name) => name !== host).map(connectOne));
  }

  /** What happened before, by time. */
  async *past(hosts: readonly string[]): AsyncGenerator<string, void> {
    const { host, stream, positions, missing, signal } = this.#deps;
    const { filter, since, tail } = this.#asked;
    const ends = new Map<string, number>();
    const unread = this.#unread;
    const historyOf = (name: string): AsyncGenerator<Item, number | undefined> => {
      const start: HostStart = since === undefined ? { tail } : { since: positions.get(name) };
      if (name === host) return ownHistory(host, stream, filter, start, signal);
      return peerHistory(this.#peer(name), this.#wanted(), start, signal);
    };
    async function* until(name: string): AsyncGenerator<Item, void> {
      for (;;) {
        const before = positions.get(name);
        try {
          const end = yield* historyOf(name);
          if (end !== undefined) ends.set(name, end);
          return;
        } catch (error) {
          if (name === host) throw error;
          // It told something, then had to wait for a slow reader of the others, and ended the connection.
          if (positions.get(name) !== before && !signal.aborted) continue;
          // The others keep sending. This one continues where it was.
          missing.add(name);
          unread.add(name);
          return;
        }
      }
    }
    const items = sorted(hosts.map(until), (item) => ("event" in item ? item.event.at : ""));
    if (since === undefined && tail !== undefined) {
      const all = await Array.fromAsync(items);
      const last = all.slice(Math.max(0, all.length - tail));
      for (const [name, end] of ends) positions.set(name, firstOf(last, name) ?? end);
      yield last.map((item) => this.#textOf(item)).join("");
    } else {
      let block: string[] = [];
      for await (const item of items) {
        block.push(this.#textOf(item));
        if (block.length < BLOCK) continue;
        yield block.join("");
        block = [];
      }
      yield block.join("");
    }
    for (const [name, end] of ends) positions.set(name, end);
  }

  /** What happens from now on. */
  async *news(hosts: readonly string[]): AsyncGenerator<string, void> {
    const { host, stream, view, feeds, positions, missing, signal } = this.#deps;
    const { filter } = this.#asked;
    const all = new Confluence<News>(signal);
    const followed = new Set<string>();
    const follow = (name: string): void => {
      if (followed.has(name)) return;
      followed.add(name);
      if (name === host) return all.add(ownNews(host, stream, filter, positions.get(host) ?? stream.newest(), signal));
      const { feed } = this.#taken.use(feeds.take(name));
      all.add(
        peerNews(this.#peer(name), feed, this.#wanted(), {
          at: positions.get(name),
          unread: this.#unread.has(name),
          isMissing: missing.has(name),
          signal,
        }),
      );
    };
    for (const name of hosts) follow(name);
    // A host that joins is heard from then on.
    this.#taken.defer(view.subscribe(KEYS.members, () => view.hosts().forEach(({ name }) => follow(name))));
    for await (const { host: from, at, items, missing: isMissing } of all.read()) {
      const texts = items.map((item) => this.#textOf(item));
      if (at !== undefined) positions.set(from, at);
      if (isMissing !== undefined && missing.has(from) !== isMissing) {
        if (isMissing) missing.add(from);
        else missing.delete(from);
        texts.push(this.#missingText());
      }
      if (texts.length > 0) yield texts.join("");
    }
  }

  /** Whether the reader wants what happened before now. */
  #isBehind(): boolean {
    return this.#asked.since !== undefined || this.#asked.tail !== undefined;
  }

  /** Other hosts number their events otherwise, and so don't get when each app began here. */
  #wanted(): Wanted {
    const { app, machine, types } = this.#asked.filter;
    return { filter: { app, machine, types }, reach: this.#asked.reach };
  }

  #peer(name: string): PeerEvents {
    const { client, view } = this.#deps;
    return {
      host: name,
      ask: (question, signal) => askPeer(client, name, question, signal),
      isMember: () => view.host(name) !== undefined,
    };
  }

  #textOf(item: Item): string {
    const { positions } = this.#deps;
    const { host } = item;
    positions.set(host, "event" in item ? item.event.sequence : item.gap.until);
    const position = positionsText(positions);
    if ("event" in item)
      return serverSent({ id: position, type: item.event.type, data: textOf(item.event, { host, position }) });
    return serverSent({ id: position, type: "gap", data: JSON.stringify({ ...item.gap, host, position }) });
  }

  #missingText(): string {
    return `event: missing\ndata: ${JSON.stringify({ hosts: [...this.#deps.missing].toSorted() })}\n\n`;
  }
}

/** Before the first event of a host. */
function firstOf(items: readonly Item[], host: string): number | undefined {
  const found = items.find((item) => item.host === host);
  return found !== undefined && "event" in found ? found.event.sequence - 1 : undefined;
}
