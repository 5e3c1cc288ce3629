/** Whether a machine counts as running for its app's quota. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isPrewarming } from "./prewarm.ts";

/** Whether the machine has a running guest, or is on the way to or from one. One that sleeps or is stopped has none. */
export function occupies(record: MachineRecord): boolean {
  switch (record.state) {
    case "starting":
    case "running":
    case "suspending":
    case "stopping":
    case "restarting":
      return true;
    case "updating": {
      const from = record.pending?.from;
      return record.goal === "running" || from === "running" || from === "restarting" || isPrewarming(record);
    }
    default:
      return false;
  }
}
