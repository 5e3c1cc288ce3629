/** Moves all machines off this host, for maintenance. */
import { guestSize } from "@hibernaut/domain/config";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { messageOf } from "@hibernaut/lib/text";
import type { MoveProgress, MoveSource } from "./source.ts";

/** Moves at a time: while one machine waits for its requests or for a disk, another one is copied. */
const AT_ONCE = 2;

interface DrainProgress extends MoveProgress {
  machine: Pick<MachineRecord, "id" | "app" | "name">;
  to: string;
}

interface HostDrainRun {
  /** Machines take their volumes along. Otherwise, those with volumes stay. */
  withVolumes: boolean;
  onProgress(progress: DrainProgress): void;
}

interface Stayed {
  machine: Pick<MachineRecord, "id" | "app" | "name">;
  reason: string;
}

interface HostDrainOptions {
  source: Pick<MoveSource, "move">;
  /** Resolves with the hosts to try for a machine, best first. `promised` is what others were given, in MB by host. */
  choose(id: string, promised: ReadonlyMap<string, number>): Promise<string[]>;
  records(): MachineRecord[];
  /** The other hosts are told whether this one takes machines. */
  changed(): void;
}

export class HostDrain {
  readonly #options: HostDrainOptions;
  #active = false;
  #running = false;

  constructor(options: HostDrainOptions) {
    this.#options = options;
  }

  /** Whether this host takes no machines, until {@link end} or the end of the platform. */
  get active(): boolean {
    return this.#active;
  }

  end(): void {
    this.#active = false;
    this.#options.changed();
  }

  /**
   * Moves every machine to the host with the most room. Resolves with how many moved, and with those that stayed and why.
   * Aborted, it finishes nothing more, and the host still takes no machines.
   */
  async run(options: HostDrainRun, signal: AbortSignal): Promise<{ moved: number; stayed: Stayed[] }> {
    if (this.#running)
      throw new HibernautError("aborted", "This host is being drained already. Wait for that, or stop it there.");
    this.#running = true;
    this.#active = true;
    this.#options.changed();
    const queue = this.#options.records();
    const promised = new Map<string, number>();
    const stayed: Stayed[] = [];
    let moved = 0;
    const worker = async () => {
      for (let record = queue.shift(); record !== undefined && !signal.aborted; record = queue.shift())
        try {
          await this.#move(record, promised, { ...options, signal });
          moved += 1;
        } catch (error) {
          stayed.push({ machine: record, reason: messageOf(error) });
        }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      signal.throwIfAborted();
      return { moved, stayed };
    } finally {
      this.#running = false;
    }
  }

  async #move(
    { id, app, name, config }: MachineRecord,
    promised: Map<string, number>,
    { withVolumes, onProgress, signal }: HostDrainRun & { signal: AbortSignal },
  ): Promise<void> {
    const { choose, source } = this.#options;
    const { memoryMb } = guestSize(config);
    const machine = { id, app, name };
    const hosts = await choose(id, promised);
    for (const [index, to] of hosts.entries()) {
      const add = (mb: number) => promised.set(to, (promised.get(to) ?? 0) + mb);
      add(memoryMb);
      const tell = (progress: MoveProgress) => onProgress({ machine, to, ...progress });
      try {
        await source.move(id, { to, cold: false, withVolumes, onProgress: tell }, signal);
        return;
      } catch (error) {
        add(-memoryMb);
        if (!isUnfit(error, to) || index === hosts.length - 1) throw error;
      }
    }
  }
}

/** Whether a host refused the machine before anything happened to it: another one may take it. */
function isUnfit(error: unknown, host: string): boolean {
  return (
    isHibernautError(error, "failed_precondition") && error.details?.host === host && error.details.reason !== undefined
  );
}
