/** What ownership needs from the machines' code. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { TakenAway, TakenIn } from "@hibernaut/machines";
import type { VolumeHere } from "./volumes.ts";

/** The part of the machines' code that takes machines in and gives them up. */
export interface Custodian {
  records(): MachineRecord[];
  stores(id: string): boolean;
  /** Returns the machine, if it is stored here and not destroyed. */
  record(id: string): MachineRecord | undefined;
  /** Returns the volumes that the machine has here, with how often they have changed hosts. */
  volumes(id: string): VolumeHere[];
  /** The machine's claim was found, or made again, and raised the epochs of these volumes. */
  owned(id: string, claimed: Pick<MachineRecord, "address" | "epoch">, raised: readonly VolumeHere[]): void;
  /** Another host's older copy counts as the machine for now, also for the next platform: see `MachineRecord.disputed`. */
  disputed(id: string): void;
  /** Returns a free address other than these. */
  anotherAddress(taken: ReadonlySet<string>): string;
  /** Puts the machine to rest, with all that it has. Resolves with whether it ran. */
  setAside(id: string, reason: string): Promise<boolean>;
  /** Starts the machine, for this reason. */
  start(id: string, by: "dispute"): void;
  takeAway(taken: TakenAway): Promise<void>;
  takeIn(taken: TakenIn): void;
}

/**
 * Makes a machine that is this host's, and is not stored here, this host's in fact. Resolves with false when there is
 * nothing to make it from.
 */
export type TakeIn = (id: string) => Promise<boolean>;
