/**
 * Guests that QEMU can no longer run. Under KVM a guest may come upon something that the processor, or KVM's emulation of
 * it, refuses. QEMU then stops the guest for good and stays: nothing ends by itself, and nothing ever answers again.
 */
import { open } from "node:fs/promises";

/** Run states (RunState in QEMU's QAPI schema) from which a guest cannot continue. */
const BROKEN: Readonly<Record<string, string>> = {
  "internal-error": "QEMU cannot continue the guest (internal-error)",
  "guest-panicked": "the guest's kernel has crashed (guest-panicked)",
};

/** How much of the end of a log is searched. A dump of the registers takes 3 KB. */
const TAIL_BYTES = 64 * 1024;
const LONGEST_LINE = 300;

/** What QEMU and kernels print about it, the most telling first. */
const TELLING = [/KVM internal error/, /kvm run failed|KVM: |hardware error/i, /Kernel panic - not syncing/];
/** QEMU explains an internal error of KVM in the next line, before the registers. */
const EXPLAINED = /KVM internal error/;
const REGISTERS = /^(RAX|EAX)=/;

/** Says what is wrong with a guest in this run state. Undefined when it runs, or can run again. */
export function brokenBy(status: string): string | undefined {
  return BROKEN[status];
}

/** Returns the line in which QEMU or the guest's kernel says why, in what they printed. Undefined when none does. Pure. */
export function tellingLine(text: string): string | undefined {
  const lines = text.split("\n").map((line) => line.trim());
  for (const pattern of TELLING) {
    const at = lines.findLastIndex((line) => pattern.test(line));
    const line = lines[at];
    if (line === undefined) continue;
    const next = lines[at + 1] ?? "";
    const explained = EXPLAINED.test(line) && next !== "" && !REGISTERS.test(next);
    return (explained ? `${line}, ${next}` : line).slice(0, LONGEST_LINE);
  }
  return undefined;
}

/** What the launcher or QEMU says when another process has the machine's tap, disk or ports. */
const TAKEN =
  /opening the tap .*: Device or resource busy|could not configure .*: Device or resource busy|Failed to get "write" lock|Could not set up host forwarding rule/;

/** Whether a start failed because another process has what belongs to this machine alone. Pure. */
export function meansTaken(message: string): boolean {
  return TAKEN.test(message);
}

/** Returns the last line with anything in it. Undefined when there is none. Pure. */
export function lastLine(text: string): string | undefined {
  const line = text.trim().split("\n").at(-1)?.trim() ?? "";
  return line === "" ? undefined : line.slice(0, LONGEST_LINE);
}

/**
 * Returns what was appended to a log since it had `from` bytes, at most the last 64 KB; "" when it cannot be read.
 * By default, the end of all of it, and so too of a log that was cut.
 */
export async function readTail(path: string, from = 0): Promise<string> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return "";
  try {
    const { size } = await file.stat();
    // One that is smaller was cut to its last lines.
    const start = Math.max(size < from ? 0 : from, size - TAIL_BYTES);
    if (start >= size) return "";
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    return buffer.toString("utf8", 0, bytesRead);
  } catch {
    return "";
  } finally {
    await file.close();
  }
}
