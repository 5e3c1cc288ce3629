/** Which boot of the host this is. */
import { readFile } from "node:fs/promises";

/** Returns the kernel's identifier of this boot: a UUID that changes whenever the host is restarted. */
export async function hostBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}
