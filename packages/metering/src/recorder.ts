/**
 * Measures what no transition tells: what machines move through the proxy, and what their writable layers take up on the
 * disk. Traffic is counted in memory and stored at an interval, so a platform that is killed loses up to one interval of
 * it. Time is not affected: it is stored with each transition.
 */
import { wholeMb } from "@hibernaut/domain/usage";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Traffic, UsageStore } from "@hibernaut/store";

interface RecorderOptions {
  store: Pick<UsageStore, "addTraffic" | "measureLayer">;
  /** How often to store traffic, in milliseconds. */
  intervalMs: number;
  /** The ids of the machines that exist. */
  machines(): readonly string[];
  /** What a machine's writable layer takes up on the disk, in bytes; 0 without one. */
  layerBytes(machineId: string): Promise<number>;
  log: { warn(fields: Record<string, unknown>, message: string): void };
}

/**
 * How often layers are measured, in milliseconds. A layer that grows all the time adds an interval to the store each
 * time: 144 a day are affordable for every machine.
 */
const LAYER_INTERVAL_MS = 600_000;

/** Call {@link UsageRecorder.close} to store what is left. */
export class UsageRecorder {
  readonly #options: RecorderOptions;
  readonly #timers: NodeJS.Timeout[];
  #traffic = new Map<string, Traffic>();
  #measuring: Promise<void> | undefined;
  #closed = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#timers = [
      setInterval(() => this.storeTraffic(), options.intervalMs).unref(),
      setInterval(() => background(this.measureLayers(), "measuring what machines wrote"), LAYER_INTERVAL_MS).unref(),
    ];
  }

  /** Counts what a machine moved through a proxy. As many machines are held as have moved something in an interval. */
  moved(machineId: string, { bytesIn, bytesOut }: Traffic): void {
    const sum = this.#traffic.get(machineId) ?? { bytesIn: 0, bytesOut: 0 };
    this.#traffic.set(machineId, { bytesIn: sum.bytesIn + bytesIn, bytesOut: sum.bytesOut + bytesOut });
  }

  /** Measures and stores the sizes of all layers. Never rejects. */
  async measureLayers(): Promise<void> {
    this.#measuring ??= this.#measureAll().finally(() => (this.#measuring = undefined));
    await this.#measuring;
  }

  /** Stores what is left. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.storeTraffic();
    await this.#measuring;
  }

  /** Stores the traffic so far. Never throws. */
  storeTraffic(): void {
    const traffic = this.#traffic;
    if (traffic.size === 0) return;
    try {
      this.#options.store.addTraffic(traffic);
      this.#traffic = new Map();
    } catch (error) {
      // A full disk: it is counted on, and stored the next time.
      this.#warn(error, "the traffic of machines cannot be stored; trying again");
    }
  }

  async #measureAll(): Promise<void> {
    const { machines, layerBytes, store } = this.#options;
    let fault: unknown;
    for (const id of machines()) {
      if (this.#closed) return;
      try {
        store.measureLayer(id, wholeMb(await layerBytes(id)));
      } catch (error) {
        fault ??= error;
      }
    }
    // One line for all of them: on a full disk, each fails for the same reason.
    if (fault !== undefined) this.#warn(fault, "the size of a writable layer cannot be stored; trying again");
  }

  #warn(error: unknown, message: string): void {
    this.#options.log.warn({ reason: messageOf(error) }, message);
  }
}
