/** What a machine's QEMU may take of the host. Pure. */

/** The size of a machine. */
interface Size {
  cpus: number;
  memoryMb: number;
}

const MB = 1024 * 1024;
/**
 * QEMU's own memory: at most 1 GB of translated code under software emulation, devices, and the buffers of its disks.
 * The memory of the guest counts twice, because the kernel slows down a group that changes files faster than it can write
 * them, well before its limit: a guest that rewrites its whole memory must not get there.
 */
const OWN_MEMORY_MB = 1280;
const GUEST_MEMORY_FACTOR = 2;
/** The kernel's period, in microseconds. */
const PERIOD_US = 100_000;
/** For QEMU's own threads, next to those that are the guest's CPUs. */
const OWN_CPUS = 0.5;
/** Shares of CPU when the host is busy: the kernel's default for one CPU. */
const WEIGHT_PER_CPU = 100;
const MOST_WEIGHT = 10_000;
/** A thread for each CPU, up to 64 that wait for disks, and a few more. */
const MOST_THREADS = 256;
/** Connections that QEMU's own network forwards take two each. */
const MOST_FILES = 65_536;

/**
 * How far machines come behind the platform when the CPUs are busy, in steps of nice(2): the platform then gets three
 * times the share of a busy machine, or of one of its threads. All machines wait when the proxy does, and not every host has
 * control groups.
 */
export const MACHINE_NICE = 5;
/** The same of programs that work for the platform: machines come first. */
export const TASK_NICE = 10;

/** The same of machines that let others come before them, where a thread cannot be idle. */
export const LAST_NICE = 19;
/** The same, as a part of the weight that a control group has, where the kernel has no idle ones. Only machines share by it. */
const LAST_WEIGHT = 1 / 9;

/** How many CPUs a machine has, from its control group's `cpu.max`. */
export function cpusOf(cpuMax: string): number {
  const [quota = 0, period = PERIOD_US] = cpuMax.split(" ").map(Number);
  return quota / period - OWN_CPUS;
}

/** Returns the weight of a machine's control group, `last` if others come before it. */
export function weightOf(cpus: number, last = false): number {
  return Math.min(MOST_WEIGHT, Math.max(1, Math.round(cpus * WEIGHT_PER_CPU * (last ? LAST_WEIGHT : 1))));
}

/** Files of the control group and what they say (https://docs.kernel.org/admin-guide/cgroup-v2.html). */
export function cgroupFiles({ cpus, memoryMb }: Size): Record<string, string> {
  return {
    "memory.max": String((memoryMb * GUEST_MEMORY_FACTOR + OWN_MEMORY_MB) * MB),
    "memory.oom.group": "1",
    "cpu.max": `${(cpus + OWN_CPUS) * PERIOD_US} ${PERIOD_US}`,
    "cpu.weight": String(weightOf(cpus)),
    "pids.max": String(MOST_THREADS),
  };
}

/**
 * Resource limits by the launcher's names. `largestBytes` is the size of the largest file that the program may write.
 * The number of processes counts for all processes of a user: it is a limit only where each machine has one of its own.
 */
export function resourceLimits(largestBytes: number, { ownUser }: { ownUser: boolean }): Record<string, number> {
  const everywhere = { core: 0, fsize: largestBytes };
  return ownUser ? { ...everywhere, memlock: 0, nofile: MOST_FILES, nproc: MOST_THREADS } : everywhere;
}

/** Enough for the names of the largest image, twice: here and in the program that packs. */
const TASK_MEMORY_MB = 3072;
/** A few threads for each CPU. */
const TASK_THREADS = 512;
const TASK_FILES = 1024;

/** The same for a program that works for the platform, such as on an image. Machines come first when the CPUs are busy. */
export function taskCgroupFiles(): Record<string, string> {
  return {
    "memory.max": String(TASK_MEMORY_MB * MB),
    "memory.oom.group": "1",
    "cpu.weight": String(WEIGHT_PER_CPU / 2),
    "pids.max": String(TASK_THREADS),
  };
}

/** As {@link resourceLimits}, for such a program. */
export function taskLimits(largestBytes: number, { ownUser }: { ownUser: boolean }): Record<string, number> {
  const everywhere = { core: 0, fsize: largestBytes, nofile: TASK_FILES };
  return ownUser ? { ...everywhere, memlock: 0, nproc: TASK_THREADS } : everywhere;
}
