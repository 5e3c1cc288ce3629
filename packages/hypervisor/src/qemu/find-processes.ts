/**
 * Which processes of the host are the QEMUs of a data directory's machines. Their arguments say so, and any process can have
 * such arguments: what counts is whose process it is, which the kernel says, and for a platform also which program it runs.
 */
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { ifAbsent, ifEnded } from "@hibernaut/lib/absence";
import type { VmmRef } from "../contract.ts";
import { LAUNCHER, startTicks } from "./process.ts";

/** A host has hundreds of processes, and each takes a descriptor while it is read. */
const READ_AT_ONCE = 16;
/** What the kernel answers about a process of another user, if it hides those. */
const HIDDEN = ["EACCES", "EPERM"];
/** What distributions call QEMU. */
const USUAL_NAME = /qemu/i;
/** What the kernel appends to the path of a program that was upgraded or removed since. */
const DELETED = / \(deleted\)$/;

/** Parents of the directories `<machine id>` of machines. */
interface Roots {
  /** Of their sockets. */
  runRoot: string;
  /** Of their files. */
  machineRoot: string;
  /** The QEMU program. Without it, it does not matter which program a process runs. */
  program?: string;
}

/**
 * Lists the QEMU processes of machines below these directories. It looks at their arguments, so it finds a process even
 * if the platform died before it could record the pid. One of another user never counts, whatever its arguments are.
 */
export async function findProcesses(roots: Roots): Promise<VmmRef[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found: VmmRef[] = [];
  const reader = async () => {
    for (let pid = pids.shift(); pid !== undefined; pid = pids.shift()) {
      const ref = await identify(pid, roots);
      if (ref !== undefined) found.push(ref);
    }
  };
  await Promise.all(Array.from({ length: READ_AT_ONCE }, reader));
  return found.sort((one, other) => one.pid - other.pid);
}

/** Lists the QEMU processes of a data directory's machines: see {@link findProcesses}. */
export function guestsIn(dataDir: string): Promise<VmmRef[]> {
  return findProcesses({ runRoot: join(dataDir, "run"), machineRoot: join(dataDir, "machines") });
}

/** Returns what a process was started with; nothing when it has ended. */
export async function argumentsOf(pid: number): Promise<string[]> {
  return (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(ifEnded(""))).split("\0");
}

/**
 * Whether one of the process's threads knows itself by this number, which in a jail is not the host's. QEMU says the numbers
 * of its threads to those who are connected to it: this tells which process that is.
 */
export async function hasThread(pid: number, thread: number): Promise<boolean> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(ifEnded<string[]>([]));
  for (const task of tasks) {
    const status = await readFile(`/proc/${pid}/task/${task}/status`, "utf8").catch(ifEnded(""));
    if (Number(/^NSpid:.*?(\d+)$/m.exec(status)?.[1]) === thread) return true;
  }
  return false;
}

async function identify(pid: number, { runRoot, machineRoot, program }: Roots): Promise<VmmRef | undefined> {
  // Where the host hides processes of other users (hidepid), they are not our guests.
  const args = await argumentsOf(pid).catch((error: NodeJS.ErrnoException): string[] => {
    if (HIDDEN.includes(error.code ?? "")) return [];
    throw error;
  });
  const machineId = /^hibernaut-([0-9a-f]{14}),/.exec(args[args.indexOf("-name") + 1] ?? "")?.[1];
  if (machineId === undefined || basename(args[0] ?? "") === LAUNCHER) return undefined;
  const doubled = (path: string) => path.replaceAll(",", ",,");
  // In a jail, QEMU does not know the path of its sockets; the platforms before did not put it in one.
  const socket = `unix:${doubled(runRoot)}/${machineId}/qmp.sock,server=on,wait=off`;
  const memory = `,mem-path=${doubled(machineRoot)}/${machineId}/memory,`;
  if (!args.includes(socket) && !args.some((argument) => argument.includes(memory))) return undefined;
  if (!(await isOurs(pid, join(runRoot, machineId)))) return undefined;
  if (program !== undefined && !(await runs(pid, program))) return undefined;
  const started = await startTicks(pid);
  return started === undefined ? undefined : { machineId, pid, startTicks: started };
}

/**
 * Whether the process has the platform's user, or the machine's own one, to whom its directory of sockets belongs. Only the
 * platform can make that directory or change its owner.
 */
async function isOurs(pid: number, runDir: string): Promise<boolean> {
  const owner = await stat(`/proc/${pid}`).then(({ uid }) => uid, ifEnded(undefined));
  if (owner === undefined) return false;
  return owner === process.getuid?.() || owner === (await stat(runDir).then(({ uid }) => uid, ifAbsent(undefined)));
}

/** Whether the process runs this program or another QEMU: an upgrade may have replaced it. True where the kernel hides that. */
async function runs(pid: number, program: string): Promise<boolean> {
  const path = await readlink(`/proc/${pid}/exe`).catch((error: NodeJS.ErrnoException) => {
    if (HIDDEN.includes(error.code ?? "")) return undefined;
    return ifEnded("")(error);
  });
  if (path === undefined) return true;
  const name = basename(path.replace(DELETED, ""));
  return USUAL_NAME.test(name) || name === basename(program);
}
