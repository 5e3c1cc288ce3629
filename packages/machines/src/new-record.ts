/** The record that a machine begins with. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { newMachineId, newUlid } from "./identity.ts";

/** What is chosen for a new machine. */
type NewMachine = Pick<
  MachineRecord,
  | "app"
  | "name"
  | "region"
  | "config"
  | "imageDigest"
  | "bundleVersion"
  | "address"
  | "releaseCommand"
  | "temporary"
  | "cordoned"
  | "lease"
> & {
  createdAt: Date;
  /** Default: a new one. */
  id?: string;
};

/** Returns the record of a machine with a new id. */
export function newRecord({ createdAt, id = newMachineId(), ...chosen }: NewMachine): MachineRecord {
  const at = createdAt.toISOString();
  return {
    ...chosen,
    id,
    state: "created",
    goal: null,
    version: newUlid(),
    snapshot: null,
    capturing: null,
    coldReason: "first_start",
    resetLayer: true,
    pending: null,
    lastBoot: null,
    stateReason: null,
    scheduleHandled: chosen.config.schedule === undefined ? null : at,
    restarts: 0,
    createdAt: at,
    stateSince: at,
    updatedAt: at,
  };
}
