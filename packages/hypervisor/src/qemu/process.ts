/** QEMU as a process: started detached, found again, and distinguished from another process with the same pid. */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { addAbortSignal, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifEnded } from "@hibernaut/lib/absence";
import { abortable, never } from "@hibernaut/lib/async";
import { VmmHeld, type VmmRef, type VmmUsage } from "../contract.ts";
import { HANDLES } from "./jail/arguments.ts";
import { hold, keyOf, startOf, statOf } from "./process-stat.ts";

/** A killed process ends within milliseconds, or later when it has gigabytes of mappings to free. */
const KILL_DEADLINE_MS = 10_000;
const POLL_MS = 2;
/** How often to check whether a process has ended. An adopted process is not our child, so the kernel does not tell us. */
const WATCH_MS = 100;

/** The number under which a started program finds the file descriptor that it inherited. */
export const INHERITED_FD = 3;
/** The name of the process that waits for a program in a jail. Its arguments contain the program's. */
export const LAUNCHER = "hibernaut-jail";

interface SpawnOptions {
  machineId: string;
  /** The file to which the program's output is appended. */
  log: string;
  /** A file descriptor that the program inherits as {@link INHERITED_FD}. The caller closes its own. */
  inherited?: number | undefined;
  /** The launcher of the jail to start it in, and its arguments up to those of the program. Without it, no jail. */
  jail?: { program: string; args: string[] } | undefined;
  /** Ends the wait for the launcher of a jail. */
  signal?: AbortSignal | undefined;
}

/** A process that was started. */
export interface Started {
  ref: VmmRef;
  /** Resolves when the process ends, with the signal that ended it or null. */
  ended: Promise<NodeJS.Signals | null>;
}

/**
 * Starts QEMU in its own session, so that it outlives this process.
 * Rejects with `unavailable` when the program cannot be run, or its jail cannot be made.
 */
export async function spawnDetached(
  program: string,
  args: string[],
  { machineId, log, inherited, jail, signal }: SpawnOptions,
): Promise<Started> {
  signal?.throwIfAborted();
  const output = openSync(log, "a", 0o600);
  try {
    const streams: StdioOptions = ["ignore", output, output, inherited ?? "ignore"];
    const child =
      jail === undefined
        ? spawn(program, args, { detached: true, stdio: streams })
        : spawn(jail.program, [...jail.args, ...args], {
            argv0: LAUNCHER,
            detached: true,
            stdio: [...streams, "pipe"],
          });
    await once(child, "spawn").catch((error: Error) => {
      const what = `${program} cannot be run: ${error.message}. Run \`hibernaut doctor\`.`;
      throw new HibernautError("unavailable", what, {}, { cause: error });
    });
    const ended = new Promise<NodeJS.Signals | null>((resolve) => {
      child.once("exit", (_code, endedBy) => resolve(endedBy));
    });
    child.unref();
    const pid = jail === undefined ? (child.pid ?? 0) : await jailed(child, program, { machineId, signal });
    const ticks = await startTicks(pid).catch((error: unknown) => {
      endSession(child); // nobody would find it
      throw error;
    });
    return { ref: { machineId, pid, startTicks: ticks ?? "gone" }, ended };
  } finally {
    closeSync(output);
  }
}

/** Reads which process the launcher has started, from what it says. Both end what they say at the program's start. */
async function jailed(
  launcher: ChildProcess,
  program: string,
  { machineId, signal = never() }: Pick<SpawnOptions, "machineId" | "signal">,
): Promise<number> {
  const status = launcher.stdio[HANDLES.status] as Readable;
  const saying = text(status);
  const said = await abortable(saying, signal).catch(async (error: unknown) => {
    endSession(launcher);
    // It is not waited for longer: it may wait itself for a file system that does not answer.
    addAbortSignal(AbortSignal.timeout(KILL_DEADLINE_MS), status);
    const last = await saying.catch(() => "");
    // Killed as well, but perhaps not gone: until then it holds its disks and its network device.
    const begun = Number(/^pid (\d+)$/m.exec(last)?.[1] ?? 0);
    if (begun > 0) await untilGone(begun, machineId);
    throw error;
  });
  const error = /^error (.*)$/m.exec(said)?.[1];
  const pid = Number(/^pid (\d+)$/m.exec(said)?.[1]);
  if (error === undefined && pid > 0) return pid;
  throw new HibernautError(
    "unavailable",
    `${program} cannot be run in its jail: ${error ?? "the launcher ended without a word"}. Run \`hibernaut doctor\`.`,
  );
}

/** Kills a program that was started, a launcher with its own: at any moment, that may be one of which it has not spoken yet. */
function endSession({ pid }: ChildProcess): void {
  if (pid !== undefined) sendKill(-pid);
}

/** Resolves when a process that was killed has ended. Rejects as {@link killProcess} does. */
async function untilGone(pid: number, machineId: string): Promise<void> {
  const ticks = await startTicks(pid);
  if (ticks !== undefined) await killProcess({ machineId, pid, startTicks: ticks });
}

/** The kernel reports CPU time in these, on every platform that Node runs on. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4096;

/** Returns what a process takes of the host (fields 14, 15 and 24). Undefined when it has ended. */
export async function usageOf(ref: VmmRef): Promise<VmmUsage | undefined> {
  const fields = await statOf(ref);
  if (fields[19] !== ref.startTicks) return undefined;
  const ticks = Number(fields[11]) + Number(fields[12]);
  const status = await readFile(`/proc/${ref.pid}/status`, "utf8").catch(ifEnded(""));
  const anonymousKb = Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
  return {
    cpuMs: (ticks * 1000) / TICKS_PER_S,
    residentBytes: Number(fields[21]) * PAGE_BYTES,
    anonymousBytes: anonymousKb * 1024,
  };
}

/** Whether the process is alive, and not another one with the same pid. Rejects when the host does not tell. */
export async function isAlive(ref: VmmRef): Promise<boolean> {
  return startOf(await statOf(ref)) === ref.startTicks;
}

/** Returns the start time of a live process, in clock ticks since boot. Undefined when it has ended. */
export async function startTicks(pid: number): Promise<string | undefined> {
  return startOf(await statOf({ pid }));
}

/** Processes that were killed by this platform and had not ended when it gave up, by {@link keyOf}. */
const held = new Map<string, VmmRef>();

/**
 * Kills the process, unless its pid belongs to another one by now, and waits until it has ended. Rejects with
 * {@link VmmHeld} when it has not ended after 10 s; from then on {@link requireEnded} knows of it, and nobody who kills it
 * again waits again.
 */
export async function killProcess(
  ref: VmmRef,
  { kill = sendKill, deadlineMs = KILL_DEADLINE_MS }: { kill?(pid: number): void; deadlineMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  if (await isAlive(ref)) kill(ref.pid);
  // A host that does not tell whether it has ended may still have it: only its answer ends the wait.
  while (await isAlive(ref).catch(() => true)) {
    if (held.has(keyOf(ref)) || performance.now() > deadline) {
      held.set(keyOf(ref), ref);
      throw new VmmHeld(ref);
    }
    await delay(POLL_MS);
  }
}

/** Rejects with {@link VmmHeld} while a process of the machine that was killed has not ended. */
export async function requireEnded(machineId: string): Promise<void> {
  for (const [key, ref] of held) {
    if (ref.machineId !== machineId) continue;
    if (await isAlive(ref)) throw new VmmHeld(ref);
    held.delete(key);
  }
}

function sendKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Resolves when the process has ended or `stop` is aborted, and holds it until then: see {@link hold}. Looks again for as
 * long as the host does not tell.
 */
export async function watchExit(ref: VmmRef, stop: AbortSignal): Promise<void> {
  let letGo: (() => Promise<void>) | undefined;
  try {
    while (!stop.aborted) {
      letGo ??= await hold(ref).catch(() => undefined); // without a descriptor, it is asked for by its pid
      if (!(await isAlive(ref).catch(() => true))) return;
      await delay(WATCH_MS, undefined, { signal: stop, ref: false }).catch(() => {});
    }
  } finally {
    await letGo?.();
  }
}
