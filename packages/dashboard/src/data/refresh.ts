/** Reads machines again about which events do not tell everything: few of them one by one, many in one list. */
import type { Machine } from "@hibernaut/client/browser";
import { background } from "./background.ts";
import type { TakeOver } from "./store.ts";

/** Milliseconds that changes are collected for. A machine that wakes makes several. */
const COLLECT_MS = 700;
/** Up to this many are read one by one. */
const ONE_BY_ONE = 6;
/** The list of all machines is read at most this often, in milliseconds: on a busy host it is long. */
const LIST_EVERY_MS = 10_000;
/** A list of thousands of machines takes seconds. A reply that takes this long was lost on the way, in milliseconds. */
export const REPLY_MS = 30_000;

/** What is read next: nothing yet, single machines, or all. Pure. */
export function nextReading(waiting: number, sinceListMs: number): "nothing" | "single" | "list" {
  if (waiting === 0) return "nothing";
  if (waiting <= ONE_BY_ONE) return "single";
  return sinceListMs >= LIST_EVERY_MS ? "list" : "nothing";
}

interface Sources {
  one(app: string, id: string, signal: AbortSignal): Promise<Machine | undefined>;
  all(signal: AbortSignal): Promise<Machine[]>;
  /** Called before a request is sent. What it returns takes over the reply. */
  begin(): TakeOver;
  onError(error: unknown): void;
}

/** The machines that are to be read again. */
export class Refresher {
  readonly #sources: Sources;
  /** Ids with their apps. */
  #waiting = new Map<string, string>();
  #listedAt = -Infinity;
  #timer: ReturnType<typeof setInterval> | undefined;
  #busy = false;
  /** Ends the present reading only. */
  #reading = new AbortController();
  readonly #end = new AbortController();

  constructor(sources: Sources) {
    this.#sources = sources;
    this.#timer = setInterval(() => background(this.#read(), "reading machines again"), COLLECT_MS);
  }

  add(app: string, id: string): void {
    this.#waiting.set(id, app);
  }

  /** Ends the present reading: its connection was lost, and the reply may never come. What it was about stays queued. */
  interrupt(): void {
    this.#reading.abort();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#end.abort();
  }

  async #read(): Promise<void> {
    const next = nextReading(this.#waiting.size, performance.now() - this.#listedAt);
    if (this.#busy || next === "nothing") return;
    const wanted = this.#waiting;
    this.#waiting = new Map();
    this.#busy = true;
    this.#reading = new AbortController();
    const signal = AbortSignal.any([this.#end.signal, this.#reading.signal, AbortSignal.timeout(REPLY_MS)]);
    const takeOver = this.#sources.begin();
    try {
      if (next === "list") {
        this.#listedAt = performance.now();
        takeOver(await this.#sources.all(signal), "others");
      } else {
        const ids = [...wanted];
        const found = await Promise.all(ids.map(([id, app]) => this.#sources.one(app, id, signal)));
        const missing = ids.filter((_one, index) => found[index] === undefined).map(([id]) => id);
        takeOver(
          found.filter((machine) => machine !== undefined),
          missing,
        );
      }
    } catch (error) {
      if (this.#end.signal.aborted) return;
      for (const [id, app] of wanted) this.#waiting.set(id, app);
      this.#sources.onError(error);
    } finally {
      this.#busy = false;
    }
  }
}
