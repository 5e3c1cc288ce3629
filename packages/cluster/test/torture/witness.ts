/** Who saw a machine run: the clients of a counter, and this host's list of processes. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const LOOK_MS = 200;

/** What the counter says: which process it is, and how many requests that has answered. */
export interface Counted {
  nonce: string;
  count: number;
}

/** What clients saw of one machine: every answer names the process that gave it. */
export class Witness {
  answered = 0;
  readonly faults: string[] = [];
  readonly #ended = new Set<string>();
  readonly #counts = new Map<string, number>();
  #current: string | undefined;

  /** How many processes there have been, one after the other. */
  get processes(): number {
    return this.#counts.size;
  }

  /** Requests come one after the other, so counts of a process go up, and one that was replaced never answers again. */
  saw({ nonce, count }: Counted): void {
    this.answered += 1;
    if (this.#ended.has(nonce)) this.faults.push(`process ${nonce} answered after it had been replaced`);
    if (nonce !== this.#current) {
      if (this.#current !== undefined) this.#ended.add(this.#current);
      this.#current = nonce;
    }
    const before = this.#counts.get(nonce) ?? 0;
    if (count <= before) this.faults.push(`process ${nonce} went back from ${before} to ${count}`);
    this.#counts.set(nonce, count);
  }
}

/** Looks again and again whether a machine has more than one virtual machine. Resolves with those that had. */
export async function watchForDoubles(ids: readonly string[], going: () => boolean): Promise<string[]> {
  const doubles: string[] = [];
  while (going()) {
    const running = vmms();
    for (const id of ids) {
      const its = running.filter(({ command }) => command.includes(id));
      if (its.length > 1) doubles.push(`${id}: processes ${its.map(({ pid }) => pid).join(", ")}`);
    }
    await delay(LOOK_MS);
  }
  return doubles;
}

/** All processes of QEMU, over all hosts, with their arguments. */
function vmms(): { pid: string; command: string }[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      if (!readlinkSync(`/proc/${pid}/exe`).includes("qemu-system")) return [];
      return [{ pid, command: readFileSync(`/proc/${pid}/cmdline`, "utf8") }];
    } catch {
      return []; // it has ended
    }
  });
}
