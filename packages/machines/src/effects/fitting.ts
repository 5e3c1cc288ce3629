/** Whether a machine's snapshot can be resumed by this platform. */
import type { MachineRecord, SnapshotRecord } from "@hibernaut/domain/machine";
import type { FittingSnapshot } from "@hibernaut/snapshots";
import { type EffectPorts, originOf } from "./ports.ts";

/** What a snapshot has to fit. */
export interface FittingPorts extends Pick<EffectPorts, "snapshots" | "bundles"> {
  network: Pick<EffectPorts["network"], "owns">;
  secrets: Pick<EffectPorts["secrets"], "version">;
  hypervisor: Pick<EffectPorts["hypervisor"], "identity">;
}

/** Returns the snapshot, or why it does not fit. Changes nothing. */
export async function fittingSnapshot(
  record: MachineRecord,
  { generation, secrets = "" }: SnapshotRecord,
  ports: FittingPorts,
): Promise<FittingSnapshot | string> {
  if (!ports.network.owns(record.address))
    return `network_changed: ${record.address} is not an address of the present network`;
  // It was discarded when they changed, unless the platform died in that moment.
  if (secrets !== ports.secrets.version(record.app))
    return "secrets_changed: the app's secrets differ from those at the time of the suspend";
  return ports.snapshots.fitting(generation, originOf(record, ports, ports.hypervisor.identity()));
}
