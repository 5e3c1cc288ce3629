/** Keeps the store up to date: one reading, then the stream of events, and another reading after each interruption. */
import {
  ApiError,
  type BrowserClient,
  type Machine,
  type StreamEntry,
  type StreamEvent,
  type StreamGap,
  type StreamPosition,
} from "@hibernaut/client/browser";
import { background, pause } from "./background.ts";
import { REPLY_MS, Refresher } from "./refresh.ts";
import { type Sight, untilSeen, whenHidden } from "./sight.ts";
import { CHART_HOURS, type Store } from "./store.ts";
import { warmUntil } from "./track.ts";

/** The platform shows that it is there at least this often, in milliseconds, or it is asked. */
const ASK_AFTER_MS = 5_000;
/** An answer takes milliseconds. A platform that takes this long is not there, in milliseconds. */
const ANSWER_MS = 5_000;
/** Heartbeats come every 15 s. */
const SILENCE_MS = 40_000;
/** No event says that a machine is no longer warm, so the page looks when its time is over, this often, in milliseconds. */
const WARM_EVERY_MS = 3_000;
/** Its memory may be needed earlier, so each of these times all warm machines are read. */
const ALL_WARM_EVERY = 10;
/** The wait after an error that is not a lost connection, in milliseconds. */
const RETRY_MS = 2_000;
/** Events that wait for a reading. With more, the next reading is as good. */
const MOST_WAITING = 10_000;

interface LiveOptions {
  api: BrowserClient;
  store: Store;
  /** Tells when the browser is offline, and when it is online again. */
  window: EventTarget;
  /** Tells when the page is hidden, and when it can be seen again. */
  document: Sight;
  /** The session has ended. */
  onSignedOut(): void;
}

/** The connection of one page to its platform. */
export class Live {
  readonly #api: BrowserClient;
  readonly #store: Store;
  readonly #window: EventTarget;
  readonly #document: Sight;
  readonly #onSignedOut: () => void;
  readonly #end = new AbortController();
  readonly #refresher: Refresher;
  /** Ends the present connection only. */
  #connection = new AbortController();
  /** When the connection was left because the page was hidden, in milliseconds since 1970. Undefined once it is back. */
  #leftAt: number | undefined;
  /** Where the stream continues. */
  #at: StreamPosition | undefined;
  /** Events that came during a reading. Undefined when there is none. */
  #waiting: StreamEvent[] | undefined;
  /** Ends the present reading only. */
  #reading = new AbortController();
  #heardAt = performance.now();
  /** Counts the readings of apps. */
  #appsTurn = 0;

  constructor({ api, store, window, document, onSignedOut }: LiveOptions) {
    this.#api = api;
    this.#store = store;
    this.#window = window;
    this.#document = document;
    this.#onSignedOut = onSignedOut;
    this.#refresher = new Refresher({
      one: async (app, id, signal) => {
        const machine = await api.getMachine(app, id, { signal }).catch((error: unknown) => this.#present(id, error));
        // The platform still tells what it knew of a machine that is gone.
        return machine?.state === "destroyed" ? undefined : machine;
      },
      all: (signal) => api.listAllMachines({ signal }),
      begin: () => store.beginReading(),
      // The next reading tries again, and the stream notices a lost connection.
      onError: () => {},
    });
  }

  start(): void {
    const { signal } = this.#end;
    this.#window.addEventListener("offline", () => this.#lose("Your browser is offline."), { signal });
    this.#window.addEventListener("online", () => this.#connection.abort(), { signal });
    // Browsers open up to six connections to a server, for all of their windows together: hidden ones leave theirs.
    const leave = () => {
      this.#leftAt ??= Date.now();
      this.#connection.abort();
    };
    whenHidden(this.#document, leave, signal);
    const asking = setInterval(() => background(this.#ask(), "asking whether the platform is there"), ASK_AFTER_MS);
    let turn = 0;
    const warm = setInterval(() => this.#readWarm({ all: ++turn % ALL_WARM_EVERY === 0 }), WARM_EVERY_MS);
    signal.addEventListener("abort", () => {
      clearInterval(asking);
      clearInterval(warm);
    });
    background(this.#run(), "following the platform");
  }

  stop(): void {
    this.#end.abort();
    this.#refresher.stop();
  }

  async #run(): Promise<void> {
    for (;;) {
      await untilSeen(this.#document, this.#end.signal);
      if (this.#end.signal.aborted) return;
      this.#connection = new AbortController();
      const signal = AbortSignal.any([this.#end.signal, this.#connection.signal]);
      try {
        await this.#follow(signal);
      } catch (error) {
        if (this.#end.signal.aborted) return;
        if (this.#connection.signal.aborted) continue;
        if (error instanceof ApiError && error.code === "unauthenticated") return this.#onSignedOut();
        // The host has left its cluster, and does not know the position: everything is read again.
        if (error instanceof ApiError && error.code === "invalid_argument") this.#at = undefined;
        this.#lost(error);
        await pause(RETRY_MS, signal);
      }
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const events = this.#api.followEvents({
      ...(this.#at !== undefined && { since: this.#at }),
      signal,
      silenceMs: SILENCE_MS,
      onLost: (error) => this.#lost(error),
      onConnected: (after) => {
        this.#at ??= after;
        background(this.#read(signal), "reading the present state");
      },
    });
    for await (const event of events) this.#take(event, signal);
  }

  #take(event: StreamEntry, signal: AbortSignal): void {
    this.#heardAt = performance.now();
    if (event.type === "missing") {
      // The machines of a host that went away, or is back, are listed otherwise.
      background(this.#read(signal), "reading the present state");
      return;
    }
    if (!("sequence" in event)) {
      const { until, position } = event as StreamGap;
      this.#at = position ?? until;
      background(this.#read(signal), "reading the present state");
      return;
    }
    this.#at = event.position ?? event.sequence;
    if (this.#waiting === undefined) this.#apply(event);
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(event);
    else this.#connection.abort();
  }

  #apply(event: StreamEvent): void {
    const id = this.#store.apply(event);
    if (id !== undefined && event.app_name !== null) this.#refresher.add(event.app_name, id);
    if (event.type.startsWith("app.") || event.type.startsWith("hostname."))
      background(this.#readApps(), "reading the apps");
  }

  /**
   * Reads the present state, then takes over the events that came meanwhile. Takes the place of a reading that is under
   * way: its connection was lost, and the reply may never come.
   */
  async #read(connection: AbortSignal): Promise<void> {
    this.#reading.abort();
    const reading = new AbortController();
    this.#reading = reading;
    const waiting = (this.#waiting ??= []);
    this.#refresher.interrupt();
    const wanted = AbortSignal.any([connection, reading.signal]);
    const signal = AbortSignal.any([wanted, AbortSignal.timeout(REPLY_MS)]);
    try {
      const [apps, machines, timeline] = await Promise.all([
        this.#api.listApps({ signal }),
        this.#api.listAllMachines({ signal }),
        this.#api.getTimeline({ hours: CHART_HOURS, signal }),
      ]);
      if (reading.signal.aborted) return;
      this.#heardAt = performance.now();
      this.#leftAt = undefined;
      this.#appsTurn++;
      this.#store.read({ apps, machines, timeline });
      this.#store.setLink({ state: "live" });
    } catch (error) {
      if (wanted.aborted) return;
      this.#lost(error);
      // From the beginning, after a wait.
      await pause(RETRY_MS, wanted);
      if (!wanted.aborted) this.#connection.abort();
    } finally {
      if (this.#reading === reading) {
        this.#waiting = undefined;
        for (const event of waiting) this.#apply(event);
      }
    }
  }

  async #readApps(): Promise<void> {
    const turn = ++this.#appsTurn;
    try {
      const signal = AbortSignal.any([this.#end.signal, AbortSignal.timeout(REPLY_MS)]);
      const apps = await this.#api.listApps({ signal });
      // Of an app that was deleted or created meanwhile, only a later reading knows.
      if (turn === this.#appsTurn) this.#store.readApps(apps);
    } catch {
      // The next reading has them.
    }
  }

  /** A connection that was cut without a word looks like a quiet one, until the platform is asked. */
  async #ask(): Promise<void> {
    const { signal } = this.#connection;
    if (signal.aborted) return;
    if (performance.now() - this.#heardAt < ASK_AFTER_MS || this.#store.link.state !== "live") return;
    try {
      await this.#api.getHealth({ signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) });
      this.#heardAt = performance.now();
    } catch (error) {
      if (signal.aborted || this.#end.signal.aborted) return;
      // A platform that answers with an error is there.
      if (error instanceof ApiError && error.status !== 0) return;
      this.#lost(error);
      this.#connection.abort();
    }
  }

  #readWarm({ all }: { all: boolean }): void {
    if (this.#store.link.state !== "live" || this.#connection.signal.aborted) return;
    const now = this.#store.now();
    for (const machine of this.#store.machines.values()) {
      const until = warmUntil(machine);
      if (until !== undefined && (all || until <= now)) this.#refresher.add(machine.app_name, machine.machine_id);
    }
  }

  /** What is known of a machine that could not be read: nothing of one that is gone. */
  #present(id: string, error: unknown): Machine | undefined {
    if (error instanceof ApiError && error.code === "not_found") return undefined;
    // Once its host is back, everything is read.
    if (error instanceof ApiError && error.code === "host_unreachable") return this.#store.machines.get(id);
    throw error;
  }

  #lose(message: string): void {
    this.#lost(new ApiError({ code: "unavailable", message }));
    this.#connection.abort();
  }

  #lost(error: unknown): void {
    const { link } = this.#store;
    const since = link.state === "lost" ? link.since : (this.#leftAt ?? Date.now());
    this.#store.setLink({ state: "lost", since, error: error instanceof ApiError ? error : undefined });
  }
}
