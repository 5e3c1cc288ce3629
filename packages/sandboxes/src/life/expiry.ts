/** Ends the time of sandboxes: each is killed or paused when its time is over. */
import { messageOf } from "@hibernaut/lib/text";
import { LONGEST_NAP_MS, TRY_AGAIN_MS } from "./limits.ts";
import { type SandboxView, stateOf } from "./view.ts";

interface ExpiryOptions {
  /** All sandboxes there are. */
  all(): readonly SandboxView[];
  /** Begins what its time ends with. */
  end(sandbox: SandboxView): void;
  log: { warn(details: object, message: string): void };
  now?(): number;
}

/** One timer for all, set to the next end. */
export class Expiry {
  readonly #options: ExpiryOptions;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** Ends those whose time is over, and waits for the next. Call it whenever a time has changed. */
  look(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    const now = this.#options.now?.() ?? Date.now();
    let nap = LONGEST_NAP_MS;
    for (const sandbox of this.#options.all()) {
      // One that ended by itself has no longer life than the others.
      if (stateOf(sandbox) !== "running" && sandbox.record.sandbox.paused === true) continue;
      const left = Date.parse(sandbox.record.sandbox.ends_at) - now;
      nap = Math.min(nap, left > 0 ? left : this.#end(sandbox));
    }
    this.#timer = setTimeout(() => this.look(), nap);
    this.#timer.unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Returns after how many milliseconds to look again: one that has ended is no longer running by then. */
  #end(sandbox: SandboxView): number {
    try {
      this.#options.end(sandbox);
    } catch (error) {
      const { id } = sandbox.record;
      this.#options.log.warn({ machine: id, reason: messageOf(error) }, "a sandbox whose time is over did not end yet");
    }
    return TRY_AGAIN_MS;
  }
}
