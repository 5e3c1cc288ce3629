/** Whether a machine may be suspended: a pure rule that names every requirement that is not met. */
import { unspoken } from "@hibernaut/domain/agent-protocol";
import { guestSize } from "@hibernaut/domain/config";
import type { Eligibility, MachineRecord } from "@hibernaut/domain/machine";

/** What the platform allows. */
export interface EligibilityLimits {
  suspendMaxMemoryMb: number;
  /** The version of the bundle that an update moves the machine to. */
  currentBundle: string;
  /** The protocol that the machine's own agent speaks. */
  agentProtocol: number;
}

/** Checks every requirement, so that users learn all of them at once. */
export function suspendEligibility(machine: Pick<MachineRecord, "config">, limits: EligibilityLimits): Eligibility {
  const { memoryMb } = guestSize(machine.config);
  const tooOld = unspoken(limits.agentProtocol);
  const reasons = [
    memoryMb > limits.suspendMaxMemoryMb &&
      `memory is ${memoryMb} MB and must be at most ${limits.suspendMaxMemoryMb} MB (setting HIBERNAUT_SUSPEND_MAX_MEMORY_MB)`,
    tooOld !== undefined && `${tooOld}: run \`hibernaut machine update <id> --yes\``,
  ].filter((reason) => typeof reason === "string");
  return { eligible: reasons.length === 0, reasons };
}
