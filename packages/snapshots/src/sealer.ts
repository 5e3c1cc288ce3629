/**
 * Seals generations in the background, one at a time. The work is cut into pieces of a MiB, half a millisecond each, and
 * reading is left to Node's threads, so that the platform's other work does not wait for it.
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { PageRange } from "@hibernaut/lib/page-ranges";
import { messageOf } from "@hibernaut/lib/text";
import { othersHave } from "./names.ts";
import { type Seal, sealOf, writeSeal } from "./seal.ts";

export interface SealerOptions {
  /** Which boot of the host this is. */
  bootId: string;
  /** The pages that the machine's last wake needed. */
  hotPages(machineId: string): Promise<PageRange[]>;
  /** A generation could not be sealed: it can still be resumed, less checked. */
  onTrouble(machineId: string, reason: string): void;
}

interface Work {
  machineId: string;
  folder: string;
  cancel: AbortController;
}

/** The file of a generation's seal. */
export function sealFile(folder: string): string {
  return join(folder, "seal.json");
}

export class Sealer {
  readonly #options: SealerOptions;
  /** Directories of generations to seal, by machine: at most one each. */
  readonly #waiting = new Map<string, string>();
  #current: Work | undefined;
  #work: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: SealerOptions) {
    this.#options = options;
  }

  /** Seals the generation in `folder` soon. Until then only the fingerprints of its manifest protect it. */
  add(machineId: string, folder: string): void {
    if (this.#closed) return;
    this.#waiting.set(machineId, folder);
    if (this.#current === undefined) this.#next();
  }

  /** The machine starts, or this generation of it goes: ends the work on it at once. */
  stop(machineId: string, folder?: string): void {
    const meant = (other: string | undefined) => folder === undefined || other === folder;
    if (meant(this.#waiting.get(machineId))) this.#waiting.delete(machineId);
    const current = this.#current;
    if (current?.machineId === machineId && meant(current.folder)) current.cancel.abort();
  }

  /** Ends all work, and waits until it has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.clear();
    this.#current?.cancel.abort();
    await this.#work;
  }

  /** Seals the generation now, and returns its seal. Rejects when aborted, or when it cannot be read or written. */
  async seal(machineId: string, folder: string, signal: AbortSignal): Promise<Seal> {
    const { bootId, hotPages } = this.#options;
    const pages = await hotPages(machineId);
    await using memory = await open(join(folder, "memory"), "r");
    const seal = await sealOf(memory, { bootId, hotPages: pages, now: new Date() }, signal);
    // As those of its siblings, which come and go.
    const sealed = { ...seal, ...((await othersHave(folder)) && { linked: true as const }) };
    signal.throwIfAborted();
    await writeSeal(sealFile(folder), sealed);
    return sealed;
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [machineId, folder] = first;
    this.#waiting.delete(machineId);
    this.#current = { machineId, folder, cancel: new AbortController() };
    this.#work = this.#carryOut(this.#current);
  }

  /** Never rejects. */
  async #carryOut({ machineId, folder, cancel }: Work): Promise<void> {
    try {
      await this.seal(machineId, folder, cancel.signal);
    } catch (error) {
      if (!cancel.signal.aborted) this.#options.onTrouble(machineId, messageOf(error));
    }
    this.#current = undefined;
    this.#next();
  }
}
