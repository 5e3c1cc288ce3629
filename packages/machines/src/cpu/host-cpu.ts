/** How busy the CPUs of the host are. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Fields of the first line of /proc/stat, after its name (proc_stat(5)): time in which a CPU had nothing to run. */
const IDLE = [3, 4];
/** Time of guests is also in that of their users. */
const COUNTED = 8;

export class HostCpu {
  /** How many there are for this process and its machines. */
  readonly count = availableParallelism();
  readonly #file: string;
  #before = { idle: 0, all: 0 };

  /** @param proc root of procfs */
  constructor(proc = "/proc") {
    this.#file = `${proc}/stat`;
  }

  /** Returns the part of their time that all CPUs worked since the last call. 0 where the kernel does not say. */
  busy(): number {
    const now = timesIn(this.#read());
    const { idle, all } = this.#before;
    this.#before = now;
    return now.all > all ? 1 - (now.idle - idle) / (now.all - all) : 0;
  }

  /** In memory, and so synchronously: see `HostMemory`. */
  #read(): string {
    try {
      return readFileSync(this.#file, "utf8");
    } catch {
      return "";
    }
  }
}

/** Ticks since the host's boot, of all CPUs together. */
function timesIn(stat: string): { idle: number; all: number } {
  const times = (/^cpu +(.*)$/m.exec(stat)?.[1] ?? "").split(" ").map(Number).slice(0, COUNTED);
  return {
    idle: IDLE.reduce((sum, field) => sum + (times[field] ?? 0), 0),
    all: times.reduce((sum, time) => sum + time, 0),
  };
}
