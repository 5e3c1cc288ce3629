/** `hibernaut backup targets`: where backups are kept. */
import { resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import type { BackupTarget } from "@hibernaut/client";
import { namedFile, s3Environment } from "../backup/credentials.ts";
import { followTarget } from "../backup/following.ts";
import { command, type Noun, type Option } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { CliError, UsageError } from "../failure.ts";
import { listCommand } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { ago, fields, lines, megabytes, style, until } from "../terminal.ts";
import { changedText, lastText } from "./backup-sets.ts";

const TARGET = [{ usage: "<target>", description: "name of the target" }] as const;
const SCHEDULE = {
  flags: "--schedule <cron>",
  description: "when backups are made, in UTC: five fields, as in '0 3 * * *'",
} as const satisfies Option;
const KEEP = {
  flags: "--keep <periods>",
  description:
    "keep the last backup of each of the latest days, weeks and months, as in 7d,4w,6m (default: delete nothing)",
} as const satisfies Option;

const add = command({
  name: "add",
  summary: "Add a target for backups",
  description:
    "Makes a repository there, unless there is one, and prints its key once, on the last line. Keep the key elsewhere: without it, nothing there can be read. A repository that exists needs its key, with --key-file. Credentials of S3 are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or as two lines from standard input.",
  arguments: [
    { usage: "<target>", description: "a name for it" },
    {
      usage: "<url>",
      description:
        "s3://<endpoint>/<bucket>/<prefix>, sftp://<user>@<host>/<path>, or a directory on the platform's host",
    },
  ],
  options: [
    SCHEDULE,
    KEEP,
    { flags: "--key-file <file>", description: "the file with the key of a repository that exists", names: "file" },
    {
      flags: "--ssh-key <file>",
      description: "of SFTP: the file with the private key, without a passphrase",
      names: "file",
    },
    { flags: "--credentials-stdin", description: "of S3: read the access key and the secret key from standard input" },
  ],
  examples: [
    "hibernaut backup targets add usb /mnt/usb/hibernaut",
    "hibernaut backup targets add cloud s3://s3.example.com/backups/home --keep 7d,4w,6m --credentials-stdin < credentials.txt",
    "hibernaut backup targets add nas sftp://backup@nas.example.com/srv/hibernaut --ssh-key id_backup --key-file key.txt",
  ],
  async run(context, [name = "", url = ""], { schedule, keep, keyFile, sshKey, credentialsStdin }) {
    const body = {
      ...{ name, url: url.includes("://") ? url : resolve(url) },
      ...given({
        schedule,
        keep,
        key: keyFile && (await namedFile(keyFile)),
        ssh_key: sshKey && (await namedFile(sshKey)),
      }),
      ...(url.startsWith("s3") && (await s3Credentials(credentialsStdin === true))),
    };
    const client = await context.client();
    const made = await context.progress(`Opening ${url}`, client.addBackupTarget(body));
    const { target, key } = made;
    context.say(
      lines(
        `Added the target ${target.name} at ${target.url}. ${target.schedule === null ? `Back up to it: hibernaut backup run --target ${target.name}` : `The next backup is due ${target.next_at === null ? "never" : until(target.next_at)}.`}`,
        key !== null &&
          "This is the key of its repository. It is not shown again. Without it, nothing there can be read, so keep it where this host's disk is not:",
      ),
    );
    return { document: made, text: key ?? "" };
  },
});

const list = listCommand({
  summary: "List the targets of backups",
  examples: ["hibernaut backup targets list"],
  fetch: (client) => client.listBackupTargets(),
  show: () => ({
    head: ["TARGET", "URL", "LAST BACKUP", "LAST GOOD", "NEXT", "KEEPS"],
    row: (one) => [
      one.name,
      one.url,
      nowText(one),
      goodText(one),
      one.next_at === null ? "-" : until(one.next_at),
      one.keep ?? "all",
    ],
    spare: ["KEEPS", "NEXT"],
    id: ({ name }) => name,
    empty: "No targets. Add one: hibernaut backup targets add",
  }),
});

const show = command({
  name: "show",
  summary: "Show a target of backups",
  arguments: TARGET,
  examples: ["hibernaut backup targets show nas"],
  async run(context, [name = ""]) {
    const target = await (await context.client()).getBackupTarget(name);
    return { document: target, text: targetText(target) };
  },
});

const update = command({
  name: "update",
  summary: "Change when backups are made, and which are kept",
  arguments: TARGET,
  options: [
    SCHEDULE,
    { flags: "--unscheduled", description: "make no backups by themselves" },
    KEEP,
    { flags: "--keep-all", description: "delete nothing" },
    {
      flags: "--drill <cron>",
      description:
        "when one app of the newest backup is tried, in UTC: each time the one whose drill is the longest ago",
    },
    { flags: "--undrilled", description: "try no apps by themselves" },
  ],
  examples: [
    "hibernaut backup targets update nas --keep 14d,8w",
    "hibernaut backup targets update nas --undrilled",
    "hibernaut backup targets update nas --unscheduled",
  ],
  async run(context, [name = ""], { schedule, unscheduled, keep, keepAll, drill, undrilled }) {
    const clash = [
      [schedule, unscheduled],
      [keep, keepAll],
      [drill, undrilled],
    ].some(([value, off]) => value !== undefined && off === true);
    if (clash) throw new UsageError("These options exclude each other. Give one of them.");
    const changes = given({
      schedule: unscheduled === true ? null : schedule,
      keep: keepAll === true ? null : keep,
      drill_schedule: undrilled === true ? null : drill,
    });
    if (Object.keys(changes).length === 0)
      throw new UsageError("No change. Add --schedule, --unscheduled, --keep, --keep-all, --drill or --undrilled.");
    const target = await (await context.client()).updateBackupTarget(name, changes);
    return { document: target, text: targetText(target) };
  },
});

const check = command({
  name: "check",
  summary: "Check what is stored at a target",
  description:
    "Finds what is missing or does not fit. With --read-data, reads everything and finds damaged bytes, too.",
  arguments: TARGET,
  options: [
    { flags: "--read-data", description: "read everything that is stored, which may take hours and cost money" },
  ],
  examples: ["hibernaut backup targets check nas", "hibernaut backup targets check nas --read-data"],
  async run(context, [name = ""], { readData = false }) {
    const client = await context.client();
    const begun = await client.startBackupCheck(name, { read_data: readData });
    const target = await followTarget(context, client, begun);
    const found = target.last_check;
    if (found === null || found.at === begun.last_check?.at)
      throw new CliError("aborted", `The check of ${name} did not end. Check it again.`);
    if (found.error !== null) throw new CliError(found.error.code, found.error.message);
    const read = readData ? "all of it was read" : "its data was not read: --read-data does";
    return { document: target, text: `What is stored at ${name} fits together; ${read}.` };
  },
});

const remove = command({
  name: "remove",
  aliases: ["rm"],
  summary: "Forget a target and its credentials; what is stored there stays",
  arguments: TARGET,
  options: [YES],
  examples: ["hibernaut backup targets remove nas --yes"],
  async run(context, [name = ""], { yes }) {
    const client = await context.client();
    const { url } = await client.getBackupTarget(name);
    await agree(`No more backups are made to ${url}, and this host forgets its key. What is stored there stays.`, {
      yes: yes === true,
      what: "changed",
    });
    await client.removeBackupTarget(name);
    return {
      document: { target: name, ok: true },
      text: `Removed the target ${name}. What is stored at ${url} is still there.`,
    };
  },
});

/** Never options: command lines appear in the process list and in the shell's history. */
async function s3Credentials(fromStdin: boolean) {
  const { accessKey: access_key, secretKey: secret_key } = s3Environment();
  if (!fromStdin) return given({ access_key, secret_key });
  if (process.stdin.isTTY)
    throw new UsageError("Standard input is a terminal. Send two lines to it, as in --credentials-stdin < FILE.");
  const [access = "", secret = ""] = (await readAll(process.stdin)).split("\n").map((line) => line.trim());
  if (access === "" || secret === "")
    throw new UsageError("Standard input must have two lines: the access key, and the secret key.");
  return { access_key: access, secret_key: secret };
}

function nowText(target: BackupTarget): string {
  const { running } = target;
  return running === null ? lastText(target) : `${running.phase} since ${ago(running.started_at)}`;
}

function goodText({ last_success: good, overdue }: BackupTarget): string {
  return `${good === null ? "never" : ago(good.at)}${overdue ? ", overdue" : ""}`;
}

function drillWord({ ended_at: at, set_at: setAt, outcome, error }: BackupTarget["drills"][number]): string {
  if (error !== null) return `failed ${ago(at)}: ${error.message}`;
  return `${outcome} ${ago(at)}${setAt === null ? "" : `, with the backup of ${localTime(setAt)}`}`;
}

function targetText(target: BackupTarget): string {
  const { last, last_check: checked, prune_error: pruneError } = target;
  return lines(
    fields([
      ["name", target.name],
      ["url", target.url],
      ["added", localTime(target.added_at)],
      [
        "schedule",
        target.schedule === null
          ? "none"
          : `${target.schedule} (UTC), next ${target.next_at === null ? "never" : localTime(target.next_at)}`,
      ],
      ["keeps", target.keep ?? "everything"],
      ["now", target.running && nowText(target)],
      ["last backup", lastText(target)],
      ["size", last?.state === "complete" ? `${megabytes(last.bytes)}, ${megabytes(last.added)} of it new` : undefined],
      ["last good", goodText(target)],
      [
        "drills",
        target.drill_schedule === null
          ? undefined
          : `${target.drill_schedule} (UTC), next ${target.next_drill_at === null ? "never" : localTime(target.next_drill_at)}`,
      ],
      ...target.drills.map((one): [string, string] => [`drill of ${one.app_name}`, drillWord(one)]),
      ["last check", checked && `${ago(checked.at)}${checked.read_data ? ", all data read" : ""}`],
    ]),
    ...[last?.error?.message, last && changedText(last), checked?.error?.message]
      .map((message) => message && style("red", message, process.stdout))
      .map((line) => line ?? undefined),
    pruneError !== null && style("red", `Old backups stay: ${pruneError}`, process.stdout),
  );
}

export const targets: Noun = {
  name: "targets",
  aliases: ["target"],
  summary: "Manage where backups are kept",
  commands: [add, list, show, update, check, remove],
};
