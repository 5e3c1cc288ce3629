/** How many files and sockets this process may have open. */
import { readFileSync } from "node:fs";

/** Returns the limit; undefined where the system does not tell, or has none. */
export function mostFiles(): number | undefined {
  try {
    const [, most] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return most === undefined ? undefined : Number(most);
  } catch {
    return undefined; // without procfs, or without a file descriptor to read it with
  }
}
