/** `hibernaut backup run`, `list` and `cancel`: backups at targets. */
import type { BackupTarget, HibernautClient } from "@hibernaut/client";
import { followTarget, onlyTarget } from "../backup/following.ts";
import { type ListedSet, setsText } from "../backup/set-list.ts";
import { command, type Option } from "../command.ts";
import { CliError, EXIT } from "../failure.ts";
import { LISTING } from "../listing.ts";
import { ago, lines, megabytes } from "../terminal.ts";

const TARGET = {
  flags: "--target <name>",
  description: "the target (default: the only one)",
} as const satisfies Option;

export const run = command({
  name: "run",
  summary: "Back up to a target now",
  description:
    "Waits until the backup was made and verified. Ctrl-C ends the wait, not the backup: cancel that with `hibernaut backup cancel`. Fails unless the backup counts.",
  options: [TARGET, { flags: "--detach", description: "do not wait" }],
  examples: ["hibernaut backup run", "hibernaut backup run --target nas --detach"],
  async run(context, _args, { target, detach }) {
    const client = await context.client();
    const name = target ?? (await onlyTarget(client)).name;
    const begun = await client.startBackup(name);
    if (detach === true)
      return { document: begun, text: `Backing up to ${name}. See how it ends: hibernaut backup targets show ${name}` };
    const ended = await followTarget(context, client, begun);
    const { last } = ended;
    // An older one says nothing of this.
    const isOfThis = last !== null && last.started_at === begun.running?.started_at;
    if (last !== null && !isOfThis)
      throw new CliError("internal", `The platform could not note how the backup to ${name} ended. See its log.`);
    if (last?.state !== "complete")
      throw new CliError(
        last?.error?.code ?? "internal",
        last?.error?.message ?? "The backup did not end. Back up again.",
      );
    const text = lines(
      `Backed up ${megabytes(last.bytes)} to ${name} as ${last.set ?? ""}, verified; ${megabytes(last.added)} of it ${last.added === 1 ? "was" : "were"} new.`,
      ...last.failed_commands.map(
        ({ app_name: app, machine_id: id, reason }) =>
          `The backup command of app ${app} failed in machine ${id}, which is backed up as it was: ${reason}`,
      ),
      changedText(last),
      ended.prune_error !== null && `Old backups could not be deleted: ${ended.prune_error}`,
    );
    return { document: ended, text };
  },
});

export const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List the backups at targets",
  description: "Newest first. One that is not complete does not count, and cannot be restored.",
  options: [TARGET, ...LISTING],
  examples: ["hibernaut backup list", "hibernaut backup list --target nas -o wide"],
  async run(context, _args, { target, ...options }) {
    const client = await context.client();
    const names = target === undefined ? (await client.listBackupTargets()).map(({ name }) => name) : [target];
    const { rows, failures } = await setsAt(client, names);
    const empty = names.length === 0 ? "No targets. Add one: hibernaut backup targets add" : "No backups.";
    const text = setsText(rows, empty, options);
    return { document: rows, text, failures };
  },
});

export const cancel = command({
  name: "cancel",
  summary: "Cancel the backup or the check that runs at a target",
  arguments: [{ usage: "<target>", description: "name of the target" }],
  examples: ["hibernaut backup cancel nas"],
  async run(context, [name = ""]) {
    await (await context.client()).cancelBackup(name);
    return {
      document: { target: name, ok: true },
      text: `Canceled. What was stored at ${name} so far does not count.`,
      exitCode: EXIT.ok,
    };
  },
});

/** A target that cannot be reached hides no other one. */
async function setsAt(
  client: HibernautClient,
  names: readonly string[],
): Promise<{ rows: ListedSet[]; failures: unknown[] }> {
  const rows: ListedSet[] = [];
  const failures: unknown[] = [];
  for (const target of names)
    try {
      for (const set of await client.listBackupSets(target)) rows.push({ target, ...set });
    } catch (error) {
      failures.push(error);
    }
  return { rows, failures };
}

/** What a backup found that can only be damage, here or at the target. Undefined without any. */
export function changedText({ changed }: Pick<NonNullable<BackupTarget["last"]>, "changed">): string | undefined {
  if (changed.length === 0) return undefined;
  const [first = ""] = changed;
  const names = changed.length === 1 ? first : `${first} and ${changed.length - 1} more`;
  return `${names} never changes, and is not what an earlier backup has although nobody wrote to it: the copy on this host or the earlier backup is damaged. See docs/backup.md.`;
}

/** How the latest backup to a target went, in few words. */
export function lastText({ last }: Pick<BackupTarget, "last">): string {
  return last === null ? "never" : `${last.state} ${ago(last.ended_at)}`;
}
