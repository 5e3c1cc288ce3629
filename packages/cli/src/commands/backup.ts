/** `hibernaut backup`: everything the platform has, in one file or at targets. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { ApiError, type Backup, type HibernautClient } from "@hibernaut/client";
import type { WholeBackup } from "../backup/checking.ts";
import { setsText } from "../backup/set-list.ts";
import { command, type Noun, type Result } from "../command.ts";
import { YES } from "../confirming.ts";
import type { Context } from "../context.ts";
import { CopyProgress } from "../copy/progress.ts";
import { UsageError } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { LISTING } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { count, lines, megabytes } from "../terminal.ts";
import { drill, restoreApp } from "./backup-apps.ts";
import { cancel, list, run } from "./backup-sets.ts";
import { targets } from "./backup-targets.ts";

const FILE = { usage: "<file>", description: "the backup, or - for standard input", names: "file" as const };

const create = command({
  name: "create",
  summary: "Back up the platform while it serves",
  description:
    "Writes all apps, machines with their memory, volumes, images and secrets to one tar archive, which only you can read: it holds the key of the secrets. No machine is stopped. Each running one is paused while it is copied; requests wait. - is standard output.",
  arguments: [{ usage: "<file>", description: "where to write the backup, or -", names: "file" }],
  examples: ["hibernaut backup create backup.tar", "hibernaut backup create - | restic backup --stdin"],
  async run(context, [name = ""]) {
    const toStream = name === "-";
    if (toStream && context.json)
      throw new UsageError("With --json, standard output is for the document. Back up to a file instead of -.");
    const file = resolve(name);
    const { receiveFile, receiveStream, requireNew } = await import("../backup/receiving.ts");
    if (!toStream) await requireNew(file);
    const client = await context.client();
    using stop = interruptible(
      `The backup was interrupted. ${toStream ? "What was written of it cannot be restored." : "No file was written."}`,
    );
    const progress = new CopyProgress("Backing up", context);
    try {
      const archive = await client.createBackup({ signal: stop.signal });
      const whole = toStream
        ? await receiveStream(archive, progress.counter)
        : await receiveFile(archive, progress.counter, file);
      const made = await client.getBackup();
      return toStream ? { document: undefined, text: "" } : createdResult(file, whole, made);
    } catch (error) {
      throw stop.signal.aborted ? stop.signal.reason : await explained(client, error);
    } finally {
      progress.end();
    }
  },
});

const verify = command({
  name: "verify",
  summary: "Check that a backup is whole",
  description: "Reads all of it and compares it with the checksum in it. Needs no platform.",
  arguments: [FILE],
  examples: ["hibernaut backup verify backup.tar", "ssh backups cat backup.tar | hibernaut backup verify -"],
  async run(context, [name = ""]) {
    const { checkBackup, sourceName, STDIN } = await import("../backup/checking.ts");
    const [file, shown] = [name === STDIN ? name : resolve(name), sourceName(name)];
    using stop = interruptible("The check was interrupted.");
    const whole = await context.progress(`Reading ${shown}`, checkBackup(file, stop.signal));
    return {
      document: { file, ...whole },
      text: `${name === STDIN ? "Standard input" : name} is whole: ${megabytes(whole.bytes)}.`,
    };
  },
});

const restore = command({
  name: "restore",
  summary: "Restore a backup into an empty directory, or one app into the platform",
  description:
    "With --app, restores one app from a target of the platform that runs: as a copy with --as, in the place of its machines with --in-place, or under its own name if it is gone. Otherwise, restores everything, from a file, standard input, or a target. Checks the backup first; one from elsewhere than a file, while it is extracted. Run it on the host, and as the user, of the platform that is to use the directory, then start that platform. Needs no running platform. Credentials of an S3 target are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
  arguments: [
    {
      usage: "[source]",
      description: "a file, - for standard input, or the URL or directory of a target; none with --app",
      names: "file",
    },
  ],
  options: [
    { flags: "--data <directory>", description: "the new data directory: empty, or not there yet" },
    { flags: "--key-file <file>", description: "of a target: the file with the key of its repository", names: "file" },
    { flags: "--ssh-key <file>", description: "of an SFTP target: the file with the private key", names: "file" },
    { flags: "--at <time>", description: "of a target: the newest set that was made then or before (default: now)" },
    { flags: "--set <name>", description: "of a target: this set" },
    { flags: "-a, --app <name>", names: "app", description: "restore this app into the platform" },
    { flags: "--target <name>", description: "with --app: from this target (default: the only one)" },
    { flags: "--as <name>", description: "with --app: the name of the copy" },
    { flags: "--in-place", description: "with --app: its machines take over from the present ones" },
    { flags: "--list", description: "of a target: only list the sets, and restore nothing" },
    ...LISTING,
    YES,
  ],
  examples: [
    "hibernaut backup restore backup.tar --data /srv/hibernaut",
    "ssh backups cat backup.tar | hibernaut backup restore - --data /srv/hibernaut",
    "hibernaut backup restore s3://s3.example.com/backups/home --key-file key.txt --data /srv/hibernaut",
    "hibernaut backup restore /mnt/usb/hibernaut --key-file key.txt --list",
    "hibernaut backup restore /mnt/usb/hibernaut --key-file key.txt --at 2026-11-20T03:00 --data /srv/hibernaut",
    "hibernaut backup restore --app shop --at 2026-11-20T03:00 --as shop-old",
  ],
  async run(context, [name = ""], options) {
    const { data, keyFile, sshKey, at, set, target, as, inPlace, yes, list: onlyList, ...listing } = options;
    const { namedApp: app } = context;
    if (app !== undefined) {
      if (name !== "" || onlyList === true || [data, keyFile, sshKey].some((option) => option !== undefined))
        throw new UsageError("With --app, the source is a target of the platform: name it with --target.");
      return await restoreApp(context, { app, target, as, inPlace, at, set, yes });
    }
    if (name === "") throw new UsageError("From where? Name a file or a target, or one app with --app.");
    if ([target, as, inPlace].some((option) => option !== undefined))
      throw new UsageError("--target, --as and --in-place are for single apps. Add --app.");
    const source = { url: name.includes("://") ? name : resolve(name), keyFile, sshKey };
    if (onlyList === true) {
      if ([data, at, set].some((option) => option !== undefined))
        throw new UsageError("--list restores nothing. Leave out --data, --at and --set.");
      await requireTarget(name);
      const sets = await (await import("../restore-set.ts")).listSets(context, source);
      return { document: sets, text: setsText(sets, "No backups.", listing) };
    }
    if (data === undefined)
      throw new UsageError("Where to? Add --data with a new directory, as in --data /srv/hibernaut.");
    const directory = resolve(data);
    if (await isTarget(name)) {
      const { restoreSet } = await import("../restore-set.ts");
      const restored = await restoreSet(context, source, { at, set, directory });
      const what = `${megabytes(restored.bytes)} of ${restored.set}, made at ${localTime(restored.at)},`;
      return { document: { url: source.url, data_dir: directory, ...restored }, text: restoredText(what, directory) };
    }
    if ([keyFile, sshKey, at, set].some((option) => option !== undefined))
      throw new UsageError("--key-file, --ssh-key, --at and --set are for targets, and this is not one.");
    const { file, whole } = await restoreFile(context, name, directory);
    const document = { file, data_dir: directory, ...whole };
    return { document, text: restoredText(megabytes(whole.bytes), directory) };
  },
});

/** Whether backups are kept there as sets: anything but a file is. */
async function isTarget(name: string): Promise<boolean> {
  if (name.includes("://")) return true;
  return name !== "-" && (await stat(resolve(name)).catch(() => undefined))?.isDirectory() === true;
}

async function requireTarget(name: string): Promise<void> {
  if (!(await isTarget(name)))
    throw new UsageError(
      `${name} is not a target. --list takes the URL of one, or the directory of one that is there.`,
    );
}

async function restoreFile(
  context: Context,
  name: string,
  directory: string,
): Promise<{ file: string; whole: WholeBackup }> {
  const [{ checkBackup, STDIN }, { emptyDirectory, extract, extractStdin, requireEmpty }] = await Promise.all([
    import("../backup/checking.ts"),
    import("../backup/restoring.ts"),
  ]);
  const file = name === STDIN ? name : resolve(name);
  // Reading the backup takes minutes.
  await requireEmpty(directory);
  using stop = interruptible("The restore was interrupted. Nothing was restored.");
  const { signal } = stop;
  const label = `Extracting to ${directory}`;
  if (file === STDIN) {
    await emptyDirectory(directory);
    return { file, whole: await context.progress(label, extractStdin(directory, signal)) };
  }
  const whole = await context.progress(`Checking ${name}`, checkBackup(file, signal));
  await emptyDirectory(directory);
  await context.progress(label, extract(file, directory, signal));
  return { file, whole };
}

function restoredText(what: string, directory: string): string {
  return lines(
    `Restored ${what} to ${directory}.`,
    "Stop the original first, for good: the same machines must not run twice. Then start the platform:",
    `    HIBERNAUT_DATA_DIR=${directory} hibernaut serve`,
  );
}

function createdResult(file: string, whole: { bytes: number; sha256: string }, made: Backup): Result {
  const { machines, longest_pause_ms: pause, without_memory: without } = made;
  const text = lines(
    `Backed up ${count(machines, "machine")} to ${file}, ${megabytes(whole.bytes)}. It holds all secrets: keep it where only you can read it.`,
    pause > 0 && `The longest that a machine was paused: ${pause} ms.`,
    ...without.map(
      ({ app_name: app, machine_id: id, reason }) => `Without memory: machine ${id} of app ${app}: ${reason}.`,
    ),
  );
  return { document: { file, ...whole, machines, longest_pause_ms: pause, without_memory: without }, text };
}

/** A reply that breaks off does not say why. The platform does, if it is still there. */
async function explained(client: HibernautClient, error: unknown): Promise<unknown> {
  const { code } = (error ?? {}) as { code?: unknown };
  if (code !== "ECONNRESET" && code !== "ERR_STREAM_PREMATURE_CLOSE") return error;
  const { state, error: why } = await client.getBackup().catch(() => ({ state: "unknown", error: null }));
  if (state === "failed" && why !== null) return new ApiError({ code: why.code, message: why.message });
  return new ApiError({
    code: "unavailable",
    message: "The platform broke off the backup, because it ended. Start it, then back up again.",
    cause: error,
  });
}

export const backup: Noun = {
  name: "backup",
  summary: "Back up the platform, here and elsewhere, and restore it",
  commands: [create, verify, restore, run, list, drill, cancel],
  nouns: [targets],
};
