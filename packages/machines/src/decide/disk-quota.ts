/** How much disk an app may take: a pure rule. */
import { HibernautError } from "@hibernaut/domain/errors";

const MB = 1024 * 1024;

/** An app's disk, in bytes. */
export interface DiskUse {
  app: string;
  /** What its machines, volumes and volume snapshots take now. */
  used: number;
  /** What it asks for. */
  growth: number;
}

/** Says why an app may not take more; undefined when it may. 0: there is no quota. */
export function refusedGrowth({ app, used, growth }: DiskUse, quotaMb: number): HibernautError | undefined {
  if (quotaMb === 0 || used + growth <= quotaMb * MB) return undefined;
  const [usedMb, neededMb] = [Math.ceil(used / MB), Math.ceil(growth / MB)];
  const message =
    `App ${app} uses ${usedMb} MB of disk and asks for ${neededMb} MB more, and its quota is ${quotaMb} MB. ` +
    "Destroy machines, volumes or volume snapshots that it does not need, ask for less, or have HIBERNAUT_DISK_QUOTA raised.";
  const details = { app_name: app, quota_mb: quotaMb, used_mb: usedMb, needed_mb: neededMb };
  return new HibernautError("failed_precondition", message, details);
}
