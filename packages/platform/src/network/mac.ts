/** Addresses of network cards. */
import { createHash } from "node:crypto";

/** A locally administered unicast MAC address that belongs to the machine for good. */
export function macOf(machineId: string): string {
  return local(createHash("sha256").update(machineId).digest().subarray(0, 5));
}

/** A locally administered unicast MAC address: `02` and five bytes. */
export function local(bytes: Uint8Array): string {
  return ["02", ...[...bytes].map((byte) => byte.toString(16).padStart(2, "0"))].join(":");
}
