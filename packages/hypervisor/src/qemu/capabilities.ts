/** What this process may do of what root may (capabilities(7)). */
import { readFile } from "node:fs/promises";

/** Their bits in `linux/capability.h`. */
const BITS = { CAP_SYS_PTRACE: 19n, CAP_SYS_NICE: 23n };

export async function hasCapability(name: keyof typeof BITS): Promise<boolean> {
  const status = await readFile("/proc/self/status", "utf8");
  const rights = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  return ((rights >> BITS[name]) & 1n) === 1n;
}
