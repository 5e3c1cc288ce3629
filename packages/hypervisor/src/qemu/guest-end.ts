/** The end of a guest that cannot continue: its process is ended, and why is found out first. */
import type { VmmRef } from "../contract.ts";
import { readTail, tellingLine, watchFailure } from "./failure.ts";
import { killProcess } from "./process.ts";
import type { Qmp } from "./qmp.ts";

/** What QEMU and the guest's kernel print, and how much of that, in bytes, is from before this QEMU. */
interface Console {
  console: string;
  consoleBefore?: number;
}

/** Watches one guest from its start. */
export class GuestEnd {
  #failure: string | undefined;
  #work: Promise<void> | undefined;

  constructor(ref: VmmRef, qmp: Qmp, console: Console) {
    watchFailure(qmp, (what) => {
      this.#work ??= this.#end(what, ref, console);
    });
  }

  /** Why the guest could not continue. Undefined when it ended in another way, or has not ended. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Resolves when as much as there is to know is known. */
  async settled(): Promise<void> {
    await this.#work;
  }

  async #end(what: string, ref: VmmRef, { console, consoleBefore }: Console): Promise<void> {
    this.#failure = what;
    const line = tellingLine(await readTail(console, consoleBefore));
    if (line !== undefined) this.#failure = `${what}: ${line}`;
    // One that the kernel does not end in time stays alive, and so does its machine.
    await killProcess(ref).catch(() => {});
  }
}
