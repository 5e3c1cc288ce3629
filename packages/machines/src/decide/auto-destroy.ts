/** Whether a machine is destroyed because its app has ended: `auto_destroy`. Pure. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Command, OutcomeName } from "./events.ts";

/**
 * Returns whether the stop that begins now is the end of the machine. It is with `auto_destroy` when the guest has said that
 * the app ended, and the restart policy does not start it again, or when a client stops the machine. Nothing else counts: what
 * the proxy, a drain, an update or a move stops is to run again, and of a guest that is lost nobody knows how far its app came.
 */
export function isFinal({ config }: Pick<MachineRecord, "config">, happened: Command | { type: OutcomeName }): boolean {
  if (config.auto_destroy !== true) return false;
  return happened.type === "app_ended" || (happened.type === "stop" && happened.wanted === true);
}
