/** What effects work with. Each one names the part of it that it uses. */
import { guestSize } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Steps } from "@hibernaut/domain/operation";
import type { HypervisorIdentity } from "@hibernaut/hypervisor";
import type { SnapshotOrigin } from "@hibernaut/snapshots";
import type { Admission } from "../admission/admission.ts";
import type { Milestone, Note } from "../decide/index.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { protocolOf } from "../eligibility.ts";
import type { MachineGuest } from "../guest.ts";
import type { GuestEvents } from "../guest-events.ts";
import type { MachineLog } from "../logs/machine-log.ts";
import type { WarmKeeper } from "../warm/keeper.ts";

export interface EffectPorts extends MachineDependencies {
  /** The guest that the machine has now. */
  guest: MachineGuest;
  /** What programs in the guest are told and say; it outlives guests. */
  inside: GuestEvents;
  /** What the app prints, and what happens to it. */
  machineLog: MachineLog;
  /**
   * Stores what a start must store in its middle, or what has changed about the machine. It is durable when this returns;
   * throws if it cannot be.
   */
  note(event: Milestone | Note): void;
  /** Times what the effect does. */
  steps: Steps;
  /** Where the paused VMMs of suspended machines are kept. */
  warm: Pick<WarmKeeper, "open" | "add" | "freeBytes">;
  /** Makes room for starts, and waits for it. */
  admission: Pick<Admission, "enter" | "room">;
}

/**
 * What a snapshot of this machine must agree with. `hypervisor` is the one that runs the guest when the snapshot is
 * taken, and the one that would run it when it is resumed.
 */
export function originOf(
  record: MachineRecord,
  { bundles }: Pick<EffectPorts, "bundles">,
  hypervisor: HypervisorIdentity,
): SnapshotOrigin {
  const { cpus, memoryMb } = guestSize(record.config);
  return {
    machineId: record.id,
    machineVersion: record.version,
    hypervisor,
    // The machine's, not the current one: the agent is in the memory, and a resume needs nothing else of the bundle.
    bundleVersion: record.bundleVersion,
    agentProtocol: protocolOf(record, { bundles }),
    imageDigest: record.imageDigest,
    cpus,
    memoryMb,
  };
}
