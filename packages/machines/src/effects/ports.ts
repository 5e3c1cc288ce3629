/** What effects work with. Each one names the part of it that it uses. */
import { guestSize } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Steps } from "@hibernaut/domain/operation";
import type { FailedCarryOver, HypervisorIdentity } from "@hibernaut/hypervisor";
import type { SnapshotOrigin } from "@hibernaut/snapshots";
import type { Admission } from "../admission/admission.ts";
import { protocolOf } from "../agent-protocol.ts";
import type { Moved } from "../decide/index.ts";
import type { MachineDependencies } from "../dependencies.ts";
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
  milestones: Milestones;
  /** Times what the effect does. */
  steps: Steps;
  /** Where the paused VMMs of suspended machines are kept. */
  warm: Pick<WarmKeeper, "open" | "add">;
  /** Makes room for starts, and waits for it. */
  admission: Pick<Admission, "enter" | "room">;
}

/** What a start stores in its middle. Each call is durable when it returns, and throws if it cannot be. */
export interface Milestones {
  /** Call before the guest's CPUs run: no snapshot may ever run twice. */
  consumeSnapshot(): void;
  /**
   * The snapshot does not fit; `reason` explains the cold start that follows. `carryOver` if it was tried in another
   * version of the hypervisor than its own.
   */
  refuseSnapshot(reason: string, carryOver?: FailedCarryOver): void;
  /** The writable layer is ready. `address` if the machine has a new one. */
  beginColdStart(start: { reason: string; address?: string; moved?: Moved }): void;
  /** Takes back a state reason that no longer holds; another one stays. */
  endReason(reason: string): void;
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
    agentProtocol: protocolOf(record, bundles),
    imageDigest: record.imageDigest,
    cpus,
    memoryMb,
  };
}
