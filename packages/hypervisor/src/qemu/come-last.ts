/** Lets other QEMUs come before one that want the same CPUs. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { run } from "@hibernaut/lib/exec";
import type { VmmRef } from "../contract.ts";
import { cpusOf, LAST_NICE, MACHINE_NICE, weightOf } from "./jail/limits.ts";
import { isAlive } from "./process.ts";
import { statOf } from "./process-stat.ts";

/** `chrt` takes milliseconds, and longer on a host where everyone waits. */
const POLICY_TIMEOUT_MS = 10_000;
/** The number of a policy in `linux/sched.h`, and the field that it has in proc_pid_stat(5), counted from the third. */
const SCHED_IDLE = 5;
const POLICY = 38;
const AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled";

/**
 * Does that, or takes it back. Where there are control groups, `cgroup` is the process's, and alone decides. Returns false without
 * root: who may let a process come later may not take that back. Does nothing for one that has ended. Rejects when the host
 * cannot do it.
 */
export async function comeLast(ref: VmmRef, cgroup: string | undefined, last: boolean): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  // Its pid may be another program's by now.
  if (!(await isAlive(ref))) return true;
  const done = cgroup === undefined ? setThreads(ref.pid, last) : setGroup(cgroup, last);
  await done.catch(async (error: unknown) => {
    if (await isAlive(ref)) throw error;
  });
  return true;
}

/** A group that is idle gives its CPU away in the moment in which another one wants it, where the kernel has that (Linux 5.15). */
async function setGroup(cgroup: string, last: boolean): Promise<void> {
  const set = (file: string, value: string) => writeFile(join(cgroup, file), value, { flag: "r+" });
  const idle = await set("cpu.idle", last ? "1" : "0").then(() => true, ifAbsent(false));
  if (idle && last) return; // and has no weight
  // What it was given: a QEMU that was taken over could say something else of itself.
  const cpus = cpusOf(await readFile(join(cgroup, "cpu.max"), "utf8"));
  await set("cpu.weight", String(weightOf(cpus, last)));
}

/** Of its session, as many kernels share the CPUs among sessions first (sched(7), autogroups), and of its threads. */
async function setThreads(pid: number, last: boolean): Promise<void> {
  ungrouped ??= ungroup();
  await ungrouped;
  const nice = last ? LAST_NICE : MACHINE_NICE;
  const threads = await readdir(`/proc/${pid}/task`);
  for (const thread of threads) setOf(Number(thread), nice);
  // Not every kernel has these groups.
  await writeFile(`/proc/${pid}/autogroup`, String(nice), { flag: "r+" }).catch(ifAbsent(undefined));
  // As an idle group does. Only when that is another one: the program that sets it takes a moment to start.
  const idle = Number((await statOf({ pid }))[POLICY]) === SCHED_IDLE;
  if (idle === last) return;
  const policy = ["--all-tasks", last ? "--idle" : "--other", "--pid", "0", String(pid)];
  await run("chrt", policy, { timeoutMs: POLICY_TIMEOUT_MS }).catch(ifAbsent(undefined));
}

let ungrouped: Promise<void> | undefined;

/**
 * Lets the kernel share CPUs among threads, not among sessions first: there an idle thread is as good as any other of a session
 * of its own. Sessions as groups are for desktops. On a host that keeps them, the nice value of the session counts.
 */
async function ungroup(): Promise<void> {
  await writeFile(AUTOGROUPS, "0", { flag: "r+" }).catch(() => {}); // there are none, or it is not ours to say
}

function setOf(thread: number, nice: number): void {
  try {
    setPriority(thread, nice);
  } catch (error) {
    const { info } = error as { info?: { code?: string } };
    if (info?.code !== "ESRCH") throw error; // else it has ended
  }
}
