/** What a machine's agent speaks, by the bundle that the machine boots. */
import { UNRECORDED_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { MachineDependencies } from "./dependencies.ts";

/** Returns the protocol of the machine's own bundle. A bundle that is gone counts as one that does not say it. */
export function protocolOf(
  { bundleVersion }: Pick<MachineRecord, "bundleVersion">,
  bundles: MachineDependencies["bundles"],
): number {
  return bundles.get(bundleVersion)?.protocol ?? UNRECORDED_PROTOCOL;
}
