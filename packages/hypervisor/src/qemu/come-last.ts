/** Lets other QEMUs come before one that want the same CPUs. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent, ifEnded } from "@hibernaut/lib/absence";
import { run } from "@hibernaut/lib/exec";
import type { VmmRef } from "../contract.ts";
import { hasCapability } from "./capabilities.ts";
import { cpusOf, LAST_NICE, MACHINE_NICE, weightOf } from "./jail/limits.ts";
import { isAlive } from "./process.ts";
import { fieldsOf } from "./process-stat.ts";

/** `chrt` takes milliseconds, and longer on a host where everyone waits. */
const POLICY_TIMEOUT_MS = 10_000;
/** The number of a policy in `linux/sched.h`, and the field that it has in proc_pid_stat(5), counted from the third. */
const SCHED_IDLE = 5;
const POLICY = 38;
const AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled";

/**
 * Does that, or takes it back. Where there are control groups, `cgroup` is the process's, and alone decides. Returns false without
 * the right to take it back (CAP_SYS_NICE). Does nothing for one that has ended. Rejects when the host cannot do it, perhaps
 * half-way: then it can be asked again.
 */
export async function comeLast(ref: VmmRef, cgroup: string | undefined, last: boolean): Promise<boolean> {
  if (!(await hasCapability("CAP_SYS_NICE"))) return false;
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

/** Of its threads, as an idle group does, and of its session: see {@link shareAmongThreads}. */
async function setThreads(pid: number, last: boolean): Promise<void> {
  const nice = last ? LAST_NICE : MACHINE_NICE;
  await writeFile(`/proc/${pid}/autogroup`, String(nice), { flag: "r+" }).catch(ifAbsent(undefined));
  const threads = await readdir(`/proc/${pid}/task`);
  const idle = await Promise.all(threads.map((thread) => isIdle(`/proc/${pid}/task/${thread}/stat`)));
  // A program that starts takes the platform a moment: only when it changes anything.
  if (!idle.includes(!last)) return;
  const policy = ["--all-tasks", last ? "--idle" : "--other", "--pid", "0", String(pid)];
  await run("chrt", policy, { timeoutMs: POLICY_TIMEOUT_MS });
}

/** Undefined for a thread that has ended. */
async function isIdle(stat: string): Promise<boolean | undefined> {
  const fields = fieldsOf(await readFile(stat, "utf8").catch(ifEnded("")));
  return fields[POLICY] === undefined ? undefined : Number(fields[POLICY]) === SCHED_IDLE;
}

/**
 * Lets the kernel share CPUs among threads. Many share them among sessions first (sched(7), autogroups), which is for desktops: each
 * QEMU has a session, and an idle thread of one gives nothing up for another. Programs that run already keep their groups, and
 * so do all on a host that does not allow this: then only the nice value of a session counts.
 */
export async function shareAmongThreads(): Promise<void> {
  await writeFile(AUTOGROUPS, "0", { flag: "r+" }).catch(() => {}); // there are no groups, or it is not ours to say
}
