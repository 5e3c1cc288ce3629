/** What happens on another host as it comes: one connection to it for all readers of this host, while there are any. */
import { setTimeout as delay } from "node:timers/promises";
import type { StreamEvent } from "@hibernaut/domain/stream-event";
import { background } from "@hibernaut/lib/background";
import type { PeerLine } from "./peer-stream.ts";

/** Events that readers may be behind by. One who is further behind asks the other host. */
const REMEMBERED = 1000;
/** After a connection was lost, in milliseconds. */
const RETRY_MS = 1000;

/** Opens the connection: after this sequence number, or with what comes. */
type OpenFeed = (since: number | undefined, signal: AbortSignal) => AsyncIterable<PeerLine>;

export class Feed {
  readonly #open: OpenFeed;
  readonly #end = new AbortController();
  #events: StreamEvent[] = [];
  /** All events after this number are among {@link Feed.#events}. */
  #from = 0;
  /** The newest number. Undefined until the host has answered. */
  #at: number | undefined;
  #state: "connecting" | "connected" | "lost" = "connecting";
  #gaps = 0;
  readonly #waiting = new Set<() => void>();

  constructor(open: OpenFeed) {
    this.#open = open;
    background(this.#run(), "following the events of another host");
  }

  /** `lost` also when the host could not be reached at all. */
  get state(): "connecting" | "connected" | "lost" {
    return this.#state;
  }

  /** The newest sequence number that is known. Undefined before the first connection. */
  get at(): number | undefined {
    return this.#at;
  }

  /** The events after a sequence number. Undefined when they are not remembered any more. */
  after(sequence: number): StreamEvent[] | undefined {
    if (sequence < this.#from) return undefined;
    return this.#events.filter((event) => event.sequence > sequence);
  }

  /** Counts how often the host said that events are missing. */
  get gaps(): number {
    return this.#gaps;
  }

  /** Resolves when something has changed, and when the signal is aborted. */
  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake);
    });
  }

  close(): void {
    this.#end.abort();
    this.#tell();
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      try {
        for await (const line of this.#open(this.#at, signal)) this.#take(line);
      } catch {
        // The host went away, or never answered: readers are told, and it is tried again.
      }
      if (signal.aborted) return;
      this.#state = "lost";
      this.#tell();
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  #take(line: PeerLine): void {
    if ("event" in line) {
      this.#at = line.event.sequence;
      this.#events.push(line.event);
      if (this.#events.length > REMEMBERED) this.#from = this.#events.shift()?.sequence ?? this.#from;
    } else if ("gap" in line) {
      // Readers ask the host where they continue.
      this.#gaps += 1;
      this.#events = [];
      this.#at = this.#from = line.gap.until;
    } else {
      if (this.#at === undefined) this.#from = line.at;
      this.#at ??= line.at;
    }
    this.#state = "connected";
    this.#tell();
  }

  #tell(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

/** The feeds of this host, each open while a client reads it. */
export class Feeds {
  readonly #open: (host: string) => OpenFeed;
  readonly #feeds = new Map<string, { feed: Feed; readers: number }>();

  constructor(open: (host: string) => OpenFeed) {
    this.#open = open;
  }

  /** Returns the feed of a host until the disposal. */
  take(host: string): { feed: Feed } & Disposable {
    const kept = this.#feeds.get(host) ?? { feed: new Feed(this.#open(host)), readers: 0 };
    this.#feeds.set(host, kept);
    kept.readers += 1;
    return {
      feed: kept.feed,
      [Symbol.dispose]: () => {
        kept.readers -= 1;
        if (kept.readers > 0) return;
        kept.feed.close();
        this.#feeds.delete(host);
      },
    };
  }
}
