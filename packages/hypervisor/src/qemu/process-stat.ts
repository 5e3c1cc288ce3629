/**
 * What the kernel says about a process, in `/proc/<pid>/stat`. A VMM is held by a descriptor of that file: it belongs to this
 * process, never to a later one with its pid, and can be read when this platform has no further descriptor left.
 */
import { type FileHandle, open, readFile } from "node:fs/promises";
import { ifEnded } from "@hibernaut/lib/absence";
import type { VmmRef } from "../contract.ts";

/** Its numbers, and a name of up to 64 bytes, are a few hundred. */
const MOST_BYTES = 2048;

interface Held {
  file: FileHandle;
  /** How many hold it. */
  holders: number;
}

/** By {@link keyOf}. */
const held = new Map<string, Held>();

/** Distinguishes a process from a later one with its pid. */
export function keyOf({ pid, startTicks }: Pick<VmmRef, "pid" | "startTicks">): string {
  return `${pid} ${startTicks}`;
}

/**
 * Keeps a descriptor of a process for all who ask about it. Returns how to let go of it. Does nothing when the process has
 * ended. Rejects when the host has no descriptor.
 */
export async function hold(ref: Pick<VmmRef, "pid" | "startTicks">): Promise<() => Promise<void>> {
  const key = keyOf(ref);
  const opened = held.has(key) ? undefined : await open(statFile(ref.pid), "r").catch(ifEnded(undefined));
  const taken = held.get(key);
  const mine = taken ?? (opened && { file: opened, holders: 0 });
  if (mine === undefined) return async () => {};
  held.set(key, mine);
  mine.holders += 1;
  if (taken !== undefined) await opened?.close(); // another one was faster
  return async () => {
    mine.holders -= 1;
    if (mine.holders > 0) return;
    held.delete(key);
    await mine.file.close();
  };
}

/**
 * The fields of proc_pid_stat(5) from the third on; none when the process has ended. Rejects when it cannot be known.
 * Without `startTicks`, of whichever process has the pid.
 */
export async function statOf({ pid, startTicks = "" }: { pid: number; startTicks?: string }): Promise<string[]> {
  const holding = held.get(keyOf({ pid, startTicks }));
  const stat = await (holding === undefined ? readFile(statFile(pid), "utf8") : readHeld(holding)).catch(ifEnded(""));
  return fieldsOf(stat);
}

/** The fields from the third on of what the kernel says. The name, the second, may contain spaces and parentheses. */
export function fieldsOf(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/**
 * Returns the start time of a live process, in clock ticks since boot (field 22). Undefined when the process has ended. A
 * zombie counts as ended once its last thread has (field 20): until then it holds its files and their locks.
 */
export function startOf(fields: readonly string[]): string | undefined {
  const ended = (fields[0] === "Z" || fields[0] === "X") && Number(fields[17]) <= 1;
  return ended ? undefined : fields[19];
}

async function readHeld({ file }: Held): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(MOST_BYTES), 0, MOST_BYTES, 0);
  return buffer.toString("utf8", 0, bytesRead);
}

function statFile(pid: number): string {
  return `/proc/${pid}/stat`;
}
