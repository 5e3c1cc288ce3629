/** When a machine that is to have the newest guest bundle gets it. */
import type { MachineRecord } from "@hibernaut/domain/machine";

/** States in which a machine that has a snapshot will resume from it, unless someone discards it. */
const WILL_RESUME: readonly MachineRecord["state"][] = ["suspended", "failed", "starting"];

/**
 * `never`: it has the newest bundle. `now`: it is updated, like by any other update. `later`: a new bundle needs a boot,
 * and a boot would cost the machine its memory, which is worth more than the bundle. So it resumes with its own bundle
 * until a cold start comes for another reason.
 */
export function whenToMove(record: MachineRecord, currentBundle: string): "never" | "now" | "later" {
  if (record.bundleVersion === currentBundle) return "never";
  return record.snapshot !== null && WILL_RESUME.includes(record.state) ? "later" : "now";
}
