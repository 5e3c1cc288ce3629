/** Whether a machine may be suspended: a rule that names every requirement that is not met. */
import { UNRECORDED_PROTOCOL, unspoken } from "@hibernaut/domain/agent-protocol";
import { guestSize } from "@hibernaut/domain/config";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import type { Eligibility, MachineRecord } from "@hibernaut/domain/machine";
import type { Settings } from "@hibernaut/settings";

/** What the platform allows. */
export interface EligibilityLimits {
  suspendMaxMemoryMb: number;
  /** The version of the bundle that an update moves the machine to. */
  currentBundle: string;
  /** The protocol that the machine's own agent speaks. */
  agentProtocol: number;
}

/** What a machine's limits follow from. */
interface LimitSources {
  settings: Pick<Settings, "suspendMaxMemoryMb">;
  bundles: { readonly current: GuestBundle; get(version: string): GuestBundle | undefined };
}

/** Returns the protocol of the machine's own bundle. A bundle that is gone counts as one that does not say it. */
export function protocolOf(
  { bundleVersion }: Pick<MachineRecord, "bundleVersion">,
  { bundles }: Pick<LimitSources, "bundles">,
): number {
  return bundles.get(bundleVersion)?.protocol ?? UNRECORDED_PROTOCOL;
}

/** Returns what the platform allows this machine. */
export function limitsOf(record: MachineRecord, { settings, bundles }: LimitSources): EligibilityLimits {
  return {
    suspendMaxMemoryMb: settings.suspendMaxMemoryMb,
    currentBundle: bundles.current.version,
    agentProtocol: protocolOf(record, { bundles }),
  };
}

/** Returns whether the machine can be suspended, and all the reasons if not. */
export function eligibilityOf(record: MachineRecord, sources: LimitSources): Eligibility {
  return suspendEligibility(record, limitsOf(record, sources));
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
