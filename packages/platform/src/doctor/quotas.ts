/** Which apps have all, or almost all, that their quotas allow. */
import { join } from "node:path";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { QUOTA_NAMES, type Quota } from "@hibernaut/domain/quota";
import { usedQuota } from "@hibernaut/machines";
import type { Settings } from "@hibernaut/settings";
import { readMachines, readQuotaApps } from "@hibernaut/store/read";
import { quotaOf } from "../quota-settings.ts";

/** From this share on, an app is about to reach its quota. */
const NEARLY = 0.9;

/**
 * Compares what the apps of a data directory have with what they may have. Returns how many have a limit of any kind, and
 * what is almost used up, such as `shop has 9 of 10 machines`. Throws when the database cannot be read.
 */
export function quotaUse(settings: Settings): { limited: number; full: { app: string; text: string }[] } {
  const file = join(settings.dataDir, "hibernaut.db");
  const defaults = quotaOf(settings);
  const machines = readMachines(file);
  const apps = readQuotaApps(file).map(({ name, quota, ...rest }) => {
    const limits: Quota = { ...defaults, ...quota };
    const own = machines.filter(({ app, state }: MachineRecord) => app === name && state !== "destroyed");
    return { name, limits, used: usedQuota(own, rest) };
  });
  const limited = apps.filter(({ limits }) => Object.values(limits).some((limit) => limit > 0));
  const full = limited.flatMap(({ name: app, limits, used }) =>
    QUOTA_NAMES.filter((each) => limits[each] > 0 && used[each] >= limits[each] * NEARLY).map((each) => ({
      app,
      text: `${app} has ${used[each]} of ${limits[each]} ${each.replace("_", " ")}`,
    })),
  );
  return { limited: limited.length, full };
}
