/** The targets of a data directory, for those who look at it without its platform. */
import { join } from "node:path";
import type { TargetView } from "./contract.ts";
import { TARGETS_FILE, TargetFile } from "./target-file.ts";
import { viewOf } from "./views.ts";

/** Reads the targets. Nothing runs there as far as is known. */
export async function readTargets(dataDir: string, now = new Date()): Promise<TargetView[]> {
  const { targets } = await new TargetFile(join(dataDir, TARGETS_FILE)).read();
  return targets.map((target) => viewOf(target, { work: undefined, failures: 0, now }));
}
