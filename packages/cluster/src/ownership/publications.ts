/**
 * What other hosts know of the configurations of this host's machines. All hosts keep and replicate each one that is written,
 * and clients change metadata as often as they like: so one publication is under way for each machine, the newest
 * configuration follows it, and what has no new version waits a little.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { untilDone, type WarnLog } from "./retry.ts";

/**
 * Between two publications of a machine whose version stays, in milliseconds. A new version took an update; metadata and
 * egress take a request, of which a token may send 20 in a second. So late may others know them: they need them for lists,
 * and to make the machine again when its host is lost.
 */
export const UNVERSIONED_EVERY_MS = 5_000;

type Published = Pick<MachineRecord, "version" | "config">;

/** What others know of a machine. */
export interface Known extends Published {
  /** When this process wrote it, as `now` counts; `-Infinity` when it did not. */
  atMs: number;
}

/** How long a publication has to wait, in milliseconds. Undefined when others know the machine as it is. Pure. */
function waitBefore(next: Published, known: Known | undefined, nowMs: number): number | undefined {
  if (known === undefined || known.version !== next.version) return 0;
  return known.config === next.config ? undefined : Math.max(0, known.atMs + UNVERSIONED_EVERY_MS - nowMs);
}

interface PublicationsOptions {
  /** Writes what others are to know. Resolves with false when the machine is another host's; rejects to be called again. */
  write(record: MachineRecord): Promise<boolean>;
  /** Whether the directory has the machine as it is. Asked once for a machine of which nothing is known. */
  isWritten(record: MachineRecord): boolean;
  log: WarnLog;
  /** Aborted at shutdown: what waits is written at once then, and tried once. */
  signal: AbortSignal;
  /** The time in milliseconds. Default: that since the process began. */
  now?(): number;
  /** Resolves after this many milliseconds, or when the signal is aborted. Never rejects. */
  pause?(ms: number, signal: AbortSignal): Promise<void>;
}

interface Publication {
  known: Known | undefined;
  /** The newest. */
  wanted: MachineRecord;
  /** Ends the wait before the next write. */
  hurry: AbortController;
  /** Absent when nothing is under way. */
  work?: Promise<void>;
}

export class Publications {
  readonly #options: Required<PublicationsOptions>;
  /** By machine. */
  readonly #all = new Map<string, Publication>();

  constructor(options: PublicationsOptions) {
    this.#options = { now: () => performance.now(), pause, ...options };
  }

  /** Others know the machine like this: its claim says so. */
  known(record: MachineRecord): void {
    this.#all.set(record.id, this.#begin(record, true));
  }

  /** Lets others know the machine like this, unless they do. Nothing of it waits for anything; never throws. */
  publish(record: MachineRecord): void {
    const one = this.#all.get(record.id) ?? this.#begin(record, this.#options.isWritten(record));
    this.#all.set(record.id, one);
    one.wanted = record;
    const wait = this.#wait(one);
    if (one.work !== undefined) {
      if (wait === 0) one.hurry.abort();
    } else if (wait !== undefined) {
      one.work = this.#keepUp(one);
      background(one.work, "publishing a machine's configuration");
    }
  }

  /** The machine is not this host's any more. */
  forget(id: string): void {
    this.#all.delete(id);
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all([...this.#all.values()].flatMap(({ work }) => work ?? []));
  }

  #begin(record: MachineRecord, isKnown: boolean): Publication {
    const known = isKnown ? { ...published(record), atMs: Number.NEGATIVE_INFINITY } : undefined;
    return { known, wanted: record, hurry: new AbortController() };
  }

  #wait({ wanted, known }: Publication): number | undefined {
    return waitBefore(wanted, known, this.#options.now());
  }

  async #keepUp(one: Publication): Promise<void> {
    const { signal, pause: waitFor } = this.#options;
    const { id } = one.wanted;
    try {
      for (let wait = this.#wait(one); wait !== undefined && this.#all.get(id) === one; wait = this.#wait(one)) {
        one.hurry = new AbortController();
        if (wait > 0 && !signal.aborted) await waitFor(wait, AbortSignal.any([signal, one.hurry.signal]));
        else if (!(await this.#write(one))) return;
      }
    } finally {
      // In the turn of the last look: what comes later begins again.
      delete one.work;
    }
  }

  /** Writes what is newest by then. At shutdown, resolves with false when the only try failed. */
  async #write(one: Publication): Promise<boolean> {
    const { write, signal, log, now } = this.#options;
    const { id } = one.wanted;
    const work = async () => {
      const { wanted } = one;
      if (this.#all.get(id) !== one) return;
      if (await write(wanted)) one.known = { ...published(wanted), atMs: now() };
      else if (this.#all.get(id) === one) this.#all.delete(id);
    };
    const what = `publishing the configuration of machine ${id}`;
    if (!signal.aborted) {
      await untilDone(work, { what, log, signal });
      return true;
    }
    try {
      await work();
      return true;
    } catch (error) {
      log.warn({ reason: messageOf(error) }, `${what} is left to the next start of the platform`);
      return false;
    }
  }
}

function published({ version, config }: MachineRecord): Published {
  return { version, config };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => {});
}
