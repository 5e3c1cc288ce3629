/**
 * Bounds what QEMU and the guest's kernel print: a guest can write to its serial console forever, and QEMU appends all
 * of it to a file.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { ifAbsent } from "@hibernaut/lib/absence";
import { messageOf } from "@hibernaut/lib/text";
import type { ControllerSet } from "./controller-set.ts";
import { mayHaveGuest } from "./decide/step.ts";
import type { MachineDependencies } from "./dependencies.ts";

/** A file above this is cut. A guest that works prints a few KB at each boot. */
export const MOST_CONSOLE_BYTES = 1024 * 1024;
/** What is kept of it: the last lines are what explains a failure, and twice as much as is searched for them. */
export const KEPT_CONSOLE_BYTES = 128 * 1024;
/** How often running machines are looked at, in milliseconds: an emulated console prints less than 1 MB in that time. */
const LOOK_MS = 5_000;
const NEWLINE = 0x0a;

/**
 * Cuts a file that is too large to its last lines. QEMU writes with O_APPEND, so it continues at the new end. Synchronous
 * between the read and the write, which takes less than a millisecond: what is printed in that time gets lost, or is before the
 * lines that are kept.
 *
 * @returns whether it was cut; never throws for a file that does not exist
 */
export async function cutConsole(path: string): Promise<boolean> {
  const { size } = await stat(path).catch(ifAbsent({ size: 0 }));
  if (size <= MOST_CONSOLE_BYTES) return false;
  // Without waiting: nothing that QEMU does to its file may hold up the platform.
  const file = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  try {
    const end = fstatSync(file).size;
    const kept = Buffer.alloc(Math.min(KEPT_CONSOLE_BYTES, end));
    const read = readSync(file, kept, 0, kept.length, end - kept.length);
    // From the first whole line on. A guest need not write lines.
    const line = kept.indexOf(NEWLINE) + 1;
    ftruncateSync(file, 0);
    appendTo(path, kept.subarray(line === read ? 0 : line, read));
    return true;
  } finally {
    closeSync(file);
  }
}

/** With O_APPEND, as QEMU writes: neither overwrites the other. */
function appendTo(path: string, bytes: Buffer): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK);
  try {
    writeSync(file, bytes);
  } finally {
    closeSync(file);
  }
}

/** Looks at the consoles of all machines that have a guest. */
export class Consoles {
  readonly #deps: Pick<MachineDependencies, "files" | "log">;
  readonly #controllers: Pick<ControllerSet, "all">;
  /** Machines whose console could not be cut at the last look: the log says it once. */
  readonly #uncut = new Set<string>();

  constructor(deps: Pick<MachineDependencies, "files" | "log">, controllers: Pick<ControllerSet, "all">) {
    this.#deps = deps;
    this.#controllers = controllers;
  }

  /** Looks at once at all machines, because an earlier platform may have left large files, and then at those with a guest. */
  start(): () => Promise<void> {
    const end = new AbortController();
    const work = this.#repeat(end.signal);
    return () => {
      end.abort();
      return work;
    };
  }

  async #repeat(signal: AbortSignal): Promise<void> {
    for (let all = true; !signal.aborted; all = false) {
      await this.#look(all);
      await delay(LOOK_MS, undefined, { signal, ref: false }).catch(() => {}); // the loop ends then
    }
  }

  async #look(all: boolean): Promise<void> {
    const { files, log } = this.#deps;
    for (const { record } of this.#controllers.all()) {
      if (!all && !mayHaveGuest(record.state)) continue;
      try {
        await cutConsole(files.paths(record.id).console);
        this.#uncut.delete(record.id);
      } catch (error) {
        if (!this.#uncut.has(record.id))
          log.warn({ machine: record.id, reason: messageOf(error) }, "the console's log cannot be cut");
        this.#uncut.add(record.id);
      }
    }
  }
}
