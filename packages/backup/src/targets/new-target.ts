/** Adds targets: what they may be, and whether they can be reached. */
import { given } from "@hibernaut/lib/given";
import { requireCredentials, type TargetSecrets } from "./access.ts";
import type { NewTarget } from "./contract.ts";
import { requireElsewhere } from "./elsewhere.ts";
import { parseKeep } from "./keep.ts";
import { locationText, parseLocation } from "./location.ts";
import type { Repositories } from "./repositories.ts";
import { givenKey, newKey, refuseTaken, requireName, requireSchedule } from "./rules.ts";
import type { TargetFile, TargetRecord } from "./target-file.ts";

interface Place {
  dataDir: string;
  file: TargetFile;
  repositories: Repositories;
  now: Date;
}

/**
 * Adds a target once its repository was opened, or made where there is none. Returns its record, and its key if that was made here.
 * Rejects with `invalid_argument` for what cannot be a target, with `already_exists` for one that is there, and with the reason
 * why the repository cannot be opened.
 */
export async function addTarget(
  wanted: NewTarget,
  { dataDir, file, repositories, now }: Place,
  signal: AbortSignal,
): Promise<{ record: TargetRecord; key: string | null }> {
  const { name, schedule = null, keep = null, key } = wanted;
  const location = parseLocation(wanted.url);
  requireName(name);
  requireSchedule(schedule);
  if (keep !== null) parseKeep(keep);
  const credentials = credentialsOf(wanted);
  requireCredentials(location, credentials);
  if (location.kind === "directory") await requireElsewhere(location.path, dataDir);
  const url = locationText(location);
  const refuse = (targets: readonly TargetRecord[]) => refuseTaken(targets, { name, url });
  refuse((await file.read()).targets);
  const secrets: TargetSecrets = { key: key === undefined ? newKey() : givenKey(key), ...credentials };
  await repositories.openOrMake({ url, secrets }, signal, key === undefined);
  const addedAt = now.toISOString();
  const record: TargetRecord = {
    ...{ name, url, addedAt, schedule, scheduledAt: addedAt, keep, sealed: repositories.seal(name, secrets) },
    ...{ last: null, lastSuccess: null, lastCheck: null, toldOverdue: false, pruneError: null },
  };
  await file.change((targets) => {
    // Another one may have been added meanwhile.
    refuse(targets);
    return [...targets, record];
  });
  return { record, key: key === undefined ? secrets.key : null };
}

function credentialsOf({ accessKey, secretKey, sshKey }: NewTarget): Omit<TargetSecrets, "key"> {
  return {
    ...given({ accessKey, secretKey, sshKey }),
  };
}
