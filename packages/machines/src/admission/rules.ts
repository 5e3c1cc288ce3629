/** Whether the host has room in memory for one more machine: pure rules. */
import { guestSize, type MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";

const MB = 1024 * 1024;

/**
 * Memory that a QEMU takes beyond its guest's, in bytes. Under emulation it holds the code that it has translated: 56 MB
 * for an app that has just started, and more for one that does a lot.
 */
export const QEMU_OVERHEAD = { kvm: 48 * MB, tcg: 128 * MB, fake: 64 * MB } as const;

/** When it is worth trying again what had no room, in seconds: idle machines fall asleep all the time. */
export const RETRY_AFTER_S = 5;

/** Of all memory settings, those that admission needs. */
export interface AdmissionSettings {
  /** What stays free, in MB. */
  memoryReserveMb: number;
  /** How much guests that are awake may have together, in percent of what is there for them. 0: nothing is refused. */
  memoryOvercommit: number;
}

/** The host as of now, in bytes. */
export interface HostRoom {
  /** What programs can still get. The page cache counts, and with it the memory of guests. */
  available: number;
  /** What the guests that are awake or about to be can still take, as {@link claim} says. */
  claimed: number;
  /** What their QEMU processes will take that are only starting. */
  starting: number;
}

/** What a start adds, in bytes. */
export interface Need {
  guest: number;
  /** What its QEMU takes; 0 if it is there already. */
  overhead: number;
}

/** What a machine's start adds. `kept`: its paused QEMU is still there. */
export function needOf(config: MachineConfig, overhead: number, kept: boolean): Need {
  return { guest: guestSize(config).memoryMb * MB, overhead: kept ? 0 : overhead };
}

/**
 * Returns what must be there for the memory of a guest that is awake, in bytes. It is a shared mapping of a file: the kernel counts
 * that as available, and can only take it by writing it to the disk while the guest waits. So all of it is subtracted, touched or
 * not, except what the guest has in its VMM alone (`own`), which the kernel does not count as available any more.
 */
export function claim(guest: number, own: number, { memoryOvercommit }: AdmissionSettings): number {
  return Math.max(0, counted(guest, memoryOvercommit) - own);
}

/** Returns what is left for further guests, in bytes; negative when less is left than the reserve. */
export function leftFor({ available, claimed, starting }: HostRoom, { memoryReserveMb }: AdmissionSettings): number {
  return available - memoryReserveMb * MB - starting - claimed;
}

/** Returns how many bytes are missing for a start; 0 or less when there is room. */
export function missingFor({ guest, overhead }: Need, room: HostRoom, settings: AdmissionSettings): number {
  return counted(guest, settings.memoryOvercommit) + overhead - leftFor(room, settings);
}

/** Memory of guests as it counts: with 200 percent, half of it; with 0, nothing. */
export function counted(bytes: number, overcommit: number): number {
  return overcommit === 0 ? 0 : (bytes * 100) / overcommit;
}

/** The refusal of a start for which there is no room. */
export function hostFull(what: string, need: Need, room: HostRoom, settings: AdmissionSettings): HibernautError {
  const mb = (bytes: number) => Math.max(0, Math.round(bytes / MB));
  const left = leftFor(room, settings);
  const guest = mb(need.guest);
  const needed = mb(counted(need.guest, settings.memoryOvercommit) + need.overhead);
  const message =
    `The host has no room in memory to start ${what}: it needs ${needed} MB (${guest} MB for the guest, the rest for QEMU), ` +
    `and ${mb(left)} MB are left of ${mb(room.available)} MB, because ${settings.memoryReserveMb} MB are kept in reserve ` +
    `and machines that are awake may use ${mb(room.claimed + room.starting)} MB. ` +
    "Stop or suspend machines, give them less memory (`hibernaut machine update <id> --memory`), or try again when idle ones have gone to sleep.";
  const details = {
    needed_mb: needed,
    left_mb: mb(left),
    available_mb: mb(room.available),
    retry_after_s: RETRY_AFTER_S,
  };
  return new HibernautError("host_full", message, details);
}
