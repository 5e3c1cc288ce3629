/** What the threads of a QEMU have had of the CPUs, in `/proc/<pid>/task/<thread>/schedstat`. */
import { readdirSync, readFileSync } from "node:fs";
import { ifEnded } from "@hibernaut/lib/absence";
import type { ThreadTimes, VmmRef } from "../contract.ts";
import { isAlive } from "./process.ts";

const NS_PER_MS = 1e6;

/** See {@link Vmm.threadTimes}. Rejects when it cannot be known. */
export async function threadTimesOf(ref: VmmRef): Promise<Map<number, ThreadTimes> | undefined> {
  // Its pid may be another program's by now.
  if (!(await isAlive(ref))) return undefined;
  const tasks = `/proc/${ref.pid}/task`;
  const times = new Map<number, ThreadTimes>();
  // Synchronously: the kernel has them in memory, and waiting for each file takes ten times as long as reading it.
  for (const thread of listed(tasks)) {
    const [ran, waited] = said(`${tasks}/${thread}/schedstat`).split(" ").map(Number);
    // A thread that has ended, or a kernel that does not count this.
    if (ran !== undefined && waited !== undefined)
      times.set(Number(thread), { ranMs: ran / NS_PER_MS, waitedMs: waited / NS_PER_MS });
  }
  return times.size > 0 ? times : undefined;
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    return ifEnded<string[]>([])(error);
  }
}

function said(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return ifEnded("")(error);
  }
}
