/**
 * What the host writes down while the platform works in a machine whose power it will cut: what it asked for, and what
 * the platform had answered by then. A journal outlives the cut, because it is outside of the machine.
 */

/** What a request has come to. `unknown`: the power failed, or the connection, before there was an answer. */
export type Outcome = "acknowledged" | "unknown";

/** What someone asks of a machine. */
export type Order = "start" | "suspend" | "stop" | "update" | "fork" | "template";

/** One line of the journal, in the order in which things happened. */
export type Entry =
  /** Something stored under a name, such as `secret shop/TOKEN`. The value null means that it was deleted. */
  | { kind: "wrote"; key: string; value: string | null; outcome: Outcome }
  /** A machine was asked for something. Written before the request is sent, because that is when it can take effect. */
  | { kind: "ordered"; machine: string; order: Order }
  /** The API named a machine's state. */
  | { kind: "reported"; machine: string; state: string }
  /** The app in a machine is about to be asked who it is. It counts that, whether or not its answer arrives. */
  | { kind: "asked"; machine: string }
  /** It answered, from its memory. */
  | { kind: "answered"; machine: string; nonce: string; count: number }
  /** The app was asked to write a line to its volume and to flush it. */
  | { kind: "noted"; machine: string; line: string; outcome: Outcome }
  /** The power failed. */
  | { kind: "cut" };

/** An entry of a machine's history, as the API has it. */
export interface MachineEvent {
  type: string;
  details: Record<string, unknown>;
}

/** A machine after a cut: as the API describes it before anyone acts on it, and then what was found in it. */
export interface MachineAfter {
  /** The state in which recovery left it. */
  state: string;
  stateReason: string | null;
  /** Newest first. */
  events: readonly MachineEvent[];
  /** Its first start after the cut, by recovery or by the check. Null while it has not been started. */
  boot: { kind: "warm" | "resume" | "cold"; reason: string } | null;
  /** The app's first answer after that start. */
  answer: { nonce: string; count: number } | null;
  /** The lines on its volume. */
  lines: readonly string[] | null;
  /** Why it does not run although the check has started it. Null when it runs, or was not started. */
  refusal: string | null;
}

/** Everything that the API says after a cut. */
export interface After {
  /** What is stored, by key. A key that is absent is not stored. */
  stored: Readonly<Record<string, string>>;
  /** By the machine's id. */
  machines: Readonly<Record<string, MachineAfter>>;
}

/** The host's record of a run: appended to, never changed. */
export class Journal {
  readonly entries: Entry[] = [];
  readonly #waiting = new Set<() => void>();

  add(entry: Entry): void {
    this.entries.push(entry);
    for (const look of this.#waiting) look();
  }

  /** Resolves with the first entry that `isIt` accepts, and with undefined when the signal comes first. */
  async next(isIt: (entry: Entry, length: number) => boolean, signal: AbortSignal): Promise<Entry | undefined> {
    const { promise, resolve } = Promise.withResolvers<Entry | undefined>();
    const look = () => {
      const last = this.entries.at(-1);
      if (last !== undefined && isIt(last, this.entries.length)) resolve(last);
    };
    const stop = () => resolve(undefined);
    this.#waiting.add(look);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      return await promise;
    } finally {
      this.#waiting.delete(look);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Records what turned out to be stored, so that it has to stay so. */
  confirm(stored: Readonly<Record<string, string>>): void {
    const keys = new Set(this.entries.flatMap((entry) => (entry.kind === "wrote" ? [entry.key] : [])));
    for (const key of keys) this.add({ kind: "wrote", key, value: stored[key] ?? null, outcome: "acknowledged" });
  }

  /** Records a write however it ends. A refusal changed nothing and is left out. */
  async write(key: string, value: string | null, request: () => Promise<unknown>): Promise<void> {
    const outcome = await outcomeOf(request);
    if (outcome !== "refused") this.add({ kind: "wrote", key, value, outcome });
  }
}

/** Returns what became of a request. `refused`: there was an answer, and it was no. */
export async function outcomeOf(request: () => Promise<unknown>): Promise<Outcome | "refused"> {
  try {
    await request();
    return "acknowledged";
  } catch (error) {
    const { status } = error as { status?: number };
    // A fault of the platform (5xx) may have come after the effect.
    return status !== undefined && status >= 400 && status < 500 ? "refused" : "unknown";
  }
}
