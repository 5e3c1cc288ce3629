/**
 * Wakes for which the host has no room in memory yet. Their requests are held while another machine is giving its memory
 * back, because room is likely soon then; otherwise they are refused at once.
 */
import { type HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { MachineState } from "@hibernaut/domain/machine";
import type { ConnectedProxy } from "./connected-proxies.ts";

/** The longest that a wake waits for room, in milliseconds. A suspend takes a second or two, a stop the grace of its app. */
const ROOM_WAIT_MS = 5_000;
/** How often the host is looked at again. What a QEMU gives back is there as soon as it has ended. */
const LOOK_MS = 200;

/** States in which a machine gives its memory back. */
const GIVING_BACK: ReadonlySet<MachineState> = new Set(["suspending", "stopping", "destroying"]);

interface RoomWaitsOptions {
  /** Starts the machine. Throws `host_full` while there is no room. */
  start(id: string): void;
  /** The states of all machines. */
  states(): Iterable<MachineState>;
  /** The wake is refused. */
  refuse(proxies: Iterable<ConnectedProxy>, id: string, error: unknown): void;
  /** Milliseconds of a steady clock. */
  now(): number;
}

interface Waiting {
  since: number;
  proxies: Set<ConnectedProxy>;
}

export class RoomWaits {
  readonly #options: RoomWaitsOptions;
  /** One entry for a machine, however many requests and proxies wait for it. */
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RoomWaitsOptions) {
    this.#options = options;
  }

  /** The host has no room for the machine. Its wake waits if that is likely to change, and is refused otherwise. */
  add(proxy: ConnectedProxy, id: string, error: HibernautError): void {
    const known = this.#waiting.get(id);
    if (known !== undefined) return void known.proxies.add(proxy);
    if (!this.#likely()) return this.#options.refuse([proxy], id, error);
    this.#waiting.set(id, { since: this.#options.now(), proxies: new Set([proxy]) });
    this.#timer ??= setInterval(() => this.look(), LOOK_MS).unref();
  }

  /** Tries again, first come, first served. */
  look(): void {
    for (const [id, { since, proxies }] of [...this.#waiting]) {
      const error = this.#failure(id);
      const waits = this.#options.now() - since < ROOM_WAIT_MS && this.#likely();
      if (isHibernautError(error, "host_full") && waits) continue;
      this.#waiting.delete(id);
      if (error !== undefined) this.#options.refuse(proxies, id, error);
    }
    if (this.#waiting.size === 0) this.close();
  }

  /** Forgets all wakes. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#waiting.clear();
  }

  #failure(id: string): unknown {
    try {
      this.#options.start(id);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  #likely(): boolean {
    for (const state of this.#options.states()) if (GIVING_BACK.has(state)) return true;
    return false;
  }
}
