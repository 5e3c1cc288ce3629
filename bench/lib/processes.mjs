/** What a process has used so far. */
import { readFileSync } from "node:fs";

/** The kernel's unit of CPU time in /proc (USER_HZ), which is the same on every Linux we run on. */
const TICK_MS = 10;

/**
 * CPU time of all threads of a process so far, user and system, in milliseconds. Throws once the process is gone.
 *
 * @param {number | undefined} pid
 */
export function cpuMs(pid) {
  // Skip the program's name, which is in parentheses and may contain spaces: utime and stime are the 12th and 13th
  // fields after it.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/**
 * What a process has in RAM, in MB: now, and at its peak. Throws once the process is gone.
 *
 * @param {number | undefined} pid
 */
export function memoryMb(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const megabytes = (/** @type {RegExp} */ line) => Number(line.exec(status)?.[1]) / 1024;
  return { rss: megabytes(/VmRSS:\s+(\d+)/), peak: megabytes(/VmHWM:\s+(\d+)/) };
}
