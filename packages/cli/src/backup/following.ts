/** Waits for what happens at a target. */
import { setTimeout as delay } from "node:timers/promises";
import type { BackupTarget, HibernautClient } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { UsageError } from "../failure.ts";
import { interruptible } from "../interrupting.ts";

/** Between two questions, in milliseconds: backups take minutes. */
const ASK_MS = 1000;

const DOING: Readonly<Record<string, string>> = {
  checking: "Checking",
  restoring: "Restoring from",
  drilling: "Trying a backup of",
};

/** Resolves with the target when nothing happens there any more. */
export async function followTarget(
  context: Context,
  client: HibernautClient,
  begun: BackupTarget,
): Promise<BackupTarget> {
  const { name } = begun;
  using stop = interruptible(`No longer waiting; it continues. Cancel it with: hibernaut backup cancel ${name}`);
  const { signal } = stop;
  const ended = async () => {
    let target = begun;
    while (target.running !== null) {
      await delay(ASK_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
      target = await client.getBackupTarget(name, { signal });
    }
    return target;
  };
  return await context.progress(`${DOING[begun.running?.phase ?? "copying"] ?? "Backing up to"} ${name}`, ended());
}

/** The only target there is. Throws a usage error when there are none or several. */
export async function onlyTarget(client: HibernautClient): Promise<BackupTarget> {
  const [only, ...others] = await client.listBackupTargets();
  if (only === undefined)
    throw new UsageError(
      "There is no target. Add one: hibernaut backup targets add <name> <url>, as its --help shows.",
    );
  if (others.length === 0) return only;
  const names = [only, ...others].map(({ name }) => name).join(", ");
  throw new UsageError(`Which target? Add --target with one of ${names}.`);
}
