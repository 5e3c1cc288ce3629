/** Lets other QEMUs come before one that want the same CPUs. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { join } from "node:path";
import { ifAbsent, ifEnded } from "@hibernaut/lib/absence";
import type { VmmRef } from "../contract.ts";
import { cpusOf, LAST_NICE, MACHINE_NICE, weightOf } from "./jail/limits.ts";
import { isAlive } from "./process.ts";

/**
 * Does that, or takes it back. Where there are control groups, `cgroup` is the process's, and alone decides. Returns false without
 * root: who may let a process come later may not take that back. Does nothing for one that has ended. Rejects when the host
 * cannot do it.
 */
export async function comeLast(ref: VmmRef, cgroup: string | undefined, last: boolean): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  // Its pid may be another program's by now.
  if (!(await isAlive(ref))) return true;
  const done = cgroup === undefined ? setNice(ref.pid, last ? LAST_NICE : MACHINE_NICE) : setWeight(cgroup, last);
  await done.catch(ifEnded(undefined));
  return true;
}

async function setWeight(cgroup: string, last: boolean): Promise<void> {
  // What it was given: a QEMU that was taken over could say something else of itself.
  const cpus = cpusOf(await readFile(join(cgroup, "cpu.max"), "utf8"));
  await writeFile(join(cgroup, "cpu.weight"), String(weightOf(cpus, last)), { flag: "r+" });
}

/** Of its session, as many kernels share the CPUs among sessions first (sched(7), autogroups), and of its threads. */
async function setNice(pid: number, nice: number): Promise<void> {
  const threads = await readdir(`/proc/${pid}/task`);
  for (const thread of threads) setOf(Number(thread), nice);
  // Not every kernel has these groups.
  await writeFile(`/proc/${pid}/autogroup`, String(nice), { flag: "r+" }).catch(ifAbsent(undefined));
}

function setOf(thread: number, nice: number): void {
  try {
    setPriority(thread, nice);
  } catch (error) {
    const { info } = error as { info?: { code?: string } };
    if (info?.code !== "ESRCH") throw error; // else it has ended
  }
}
