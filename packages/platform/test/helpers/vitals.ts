/** What a process takes from its host. */
import { readdir, readFile } from "node:fs/promises";

export interface Vitals {
  /** Resident memory, in MB of 1024 KB. */
  memoryMb: number;
  /** Open file descriptors: files, sockets, timers. */
  files: number;
}

/** Reads it from `/proc`. Rejects when the process has ended. */
export async function vitalsOf(pid: number): Promise<Vitals> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
  return { memoryMb: Math.round(Number(kilobytes) / 1024), files: (await readdir(`/proc/${pid}/fd`)).length };
}
