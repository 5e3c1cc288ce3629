/** What tests that run for long share: for how long, and whether a process takes more and more from its host. */
import { readdir, readFile } from "node:fs/promises";
import { parseSeconds } from "@hibernaut/lib/quantities";

/** How many seconds a soak takes: what `HIBERNAUT_SOAK` says, such as `3m`, or an hour. */
export function soakSeconds(): number {
  const text = process.env["HIBERNAUT_SOAK"] ?? "1h";
  const seconds = parseSeconds(text, "s");
  if (seconds === undefined || seconds <= 0)
    throw new Error(`HIBERNAUT_SOAK is "${text}", which is not a duration. Set it to one such as 3m or 1h.`);
  return seconds;
}

/** What a process takes from its host: resident memory in MB of 1024 KB, and open file descriptors. */
export interface Vitals {
  memoryMb: number;
  files: number;
}

/** Rejects when the process has ended. */
export async function vitalsOf(pid: number): Promise<Vitals> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
  return { memoryMb: Math.round(Number(kilobytes) / 1024), files: (await readdir(`/proc/${pid}/fd`)).length };
}

export function told({ memoryMb, files }: Vitals): string {
  return `the platform has ${memoryMb} MB and ${files} open files`;
}
