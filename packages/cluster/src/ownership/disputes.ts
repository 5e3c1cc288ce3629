/** Machines that are stored here, while the directory does not say that they are this host's, nor that they are not. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { WarnLog } from "./retry.ts";

/** What a client waits before it asks again, in seconds: about the longest time after which it is looked at again. */
const RETRY_S = 10;

export class Disputes {
  readonly #log: WarnLog;
  readonly #why = new Map<string, string>();

  constructor(log: WarnLog) {
    this.#log = log;
  }

  /** All of them, with what to tell people. */
  list(): { machine: string; reason: string }[] {
    return [...this.#why].map(([machine, reason]) => ({ machine, reason }));
  }

  /** It is not certain whose the machine is. */
  begin(id: string, why: string): void {
    if (this.#why.get(id) !== why) this.#log.warn({ machine: id }, why);
    this.#why.set(id, why);
  }

  /** It is certain now, or the machine is gone. */
  end(id: string): void {
    this.#why.delete(id);
  }

  /** Why the machine may not start. */
  refusal(id: string): HibernautError | undefined {
    const why = this.#why.get(id);
    return why === undefined
      ? undefined
      : new HibernautError("unavailable", why, { machine_id: id, retry_after_s: RETRY_S });
  }
}
