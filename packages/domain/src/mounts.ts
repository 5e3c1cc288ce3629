/** Which volumes machines have. Pure. */
import type { MachineRecord } from "./machine.ts";
import type { Mount } from "./volume.ts";

/** Returns the ids of the volumes that a machine has or is about to have, each once. */
export function volumesOf({ config, pending }: Pick<MachineRecord, "config" | "pending">): string[] {
  return [...new Set([...(config.mounts ?? []), ...(pending?.config.mounts ?? [])].map(wantedOf))];
}

/** Returns the name or id that a mount asks for. In a stored mount it is the id. */
export function wantedOf({ volume, source }: Mount): string {
  return volume ?? source ?? "";
}
