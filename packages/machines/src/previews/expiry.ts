/** Destroys previews whose time is over. */
import { setTimeout as delay } from "node:timers/promises";
import type { AppRecord } from "@hibernaut/domain/machine";
import { lookForExpired, type Overdue } from "@hibernaut/domain/preview";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Logger } from "../dependencies.ts";

/** At least this many looks are made during the grace, so that a clock which is wrong for a moment is found right again. */
const LOOKS_PER_GRACE = 5;
/** The longest time between two looks, in milliseconds: what is to be destroyed takes up memory and disk. */
const MOST_BETWEEN_LOOKS_MS = 60_000;

interface ExpiryOptions {
  /** All apps of this host, by name. */
  list(): AppRecord[];
  /** Whether this host decides when previews end. In a cluster, one host does. */
  decides(): boolean;
  /** Stores that the time of a preview is over, unless it was renewed. */
  expire(preview: AppRecord): Promise<boolean>;
  /** Destroys what this host has of a preview, and on the host that decides, the preview. */
  destroy(preview: AppRecord): Promise<void>;
  /** For how long a preview has to have been past its time, in milliseconds. */
  graceMs: number;
  log: Logger;
  /** The wall clock, in milliseconds since 1970. */
  now?(): number;
  /** A clock that nobody sets, in milliseconds. */
  steady?(): number;
}

/**
 * Ends previews in two steps. The first stores that the time is over, so that nothing renews the preview, and what was begun
 * is continued after a restart. A later look destroys it, when all hosts of a cluster have heard of that.
 */
export class PreviewExpiry {
  readonly #options: Required<ExpiryOptions>;
  #overdue: Overdue = new Map();
  /** Why a preview could not be destroyed the last time, by name. */
  readonly #troubles = new Map<string, string>();

  constructor(options: ExpiryOptions) {
    this.#options = { now: () => Date.now(), steady: () => performance.now(), ...options };
  }

  /** Looks now and then. Returns a function that ends that. */
  start(): () => void {
    const end = new AbortController();
    background(this.#repeat(end.signal), "looking for previews whose time is over");
    return () => end.abort();
  }

  /** Looks once. Never rejects. */
  async look(): Promise<void> {
    const { list, decides, expire, destroy, graceMs, log, now, steady } = this.#options;
    const apps = list();
    const { overdue, due } = lookForExpired(apps, this.#overdue, { now: now(), steady: steady(), graceMs });
    this.#overdue = overdue;
    for (const app of apps) {
      const { name, preview } = app;
      if (due.includes(name) && decides())
        await this.#try(name, async () => {
          if (await expire(app)) log.info({ app: name }, "the time of a preview is over: it is destroyed soon");
        });
      // Only what is still there: meanwhile someone may have destroyed it, and made another app of that name.
      const isThere = () => list().some((each) => each.name === name && each.createdAt === app.createdAt);
      if (preview?.expired === true && isThere()) await this.#try(name, () => destroy(app));
    }
  }

  async #repeat(signal: AbortSignal): Promise<void> {
    const ms = Math.min(MOST_BETWEEN_LOOKS_MS, this.#options.graceMs / LOOKS_PER_GRACE);
    while (!signal.aborted) {
      await delay(ms, undefined, { signal, ref: false })
        .then(() => this.look())
        .catch(() => {}); // only the delay rejects, when the platform ends
    }
  }

  /** What fails is tried again by the next look. Each reason is told once. */
  async #try(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#troubles.delete(name);
    } catch (error) {
      const reason = messageOf(error);
      if (this.#troubles.get(name) !== reason)
        this.#options.log.warn(
          { app: name, reason },
          "a preview whose time is over could not be destroyed; trying again",
        );
      this.#troubles.set(name, reason);
    }
  }
}
