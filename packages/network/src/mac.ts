/** MAC addresses. */
import { createHash } from "node:crypto";

/** Returns the machine's MAC address, which never changes. */
export function macOf(machineId: string): string {
  return local(createHash("sha256").update(machineId).digest().subarray(0, 5));
}

/** Returns a locally administered unicast MAC address: `02` and five bytes. */
export function local(bytes: Uint8Array): string {
  return ["02", ...[...bytes].map((byte) => byte.toString(16).padStart(2, "0"))].join(":");
}
