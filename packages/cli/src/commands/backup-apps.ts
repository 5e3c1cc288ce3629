/** `hibernaut backup restore --app` and `backup drill`: single apps out of backups, with a platform that runs. */
import type { AppRestore, BackupDrill } from "@hibernaut/client";
import { followTarget, onlyTarget } from "../backup/following.ts";
import { command, type Option } from "../command.ts";
import { agree } from "../confirming.ts";
import type { Context } from "../context.ts";
import { CliError, UsageError } from "../failure.ts";
import { localTime, writtenTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { count, lines, style } from "../terminal.ts";

const TARGET = {
  flags: "--target <name>",
  description: "the target (default: the only one)",
} as const satisfies Option;

interface Wanted {
  app: string;
  target: string | undefined;
  as: string | undefined;
  inPlace: boolean | undefined;
  at: string | undefined;
  set: string | undefined;
  yes: boolean | undefined;
}

/** Restores one app into the platform that runs, and waits until that has ended. */
export async function restoreApp(context: Context, { app, target, as, inPlace, at, set, yes }: Wanted) {
  const client = await context.client();
  const name = target ?? (await onlyTarget(client)).name;
  if (inPlace === true)
    await agree(
      `The machines of ${app} stop getting requests, and restored ones get them in their place, with what they had then. The present ones stay, cordoned, with their volumes.`,
      { yes: yes === true, what: "changed" },
    );
  const body = { app_name: app, ...given({ as, in_place: inPlace, set, at: momentOf(at) }) };
  const begun = await client.restoreApp(name, body);
  const { last_restore: restored } = await followTarget(context, client, begun);
  if (restored === null || restored.started_at !== begun.running?.started_at) throw notNoted(name);
  if (restored.error !== null) throw new CliError(restored.error.code, restored.error.message);
  return { document: { target: name, ...restored }, text: restoreText(restored, app) };
}

export const drill = command({
  name: "drill",
  summary: "Try whether an app can be restored from its backup",
  description:
    "Restores the newest backup of an app into machines that nobody reaches and that reach nobody, wakes them, waits for their health checks, counts what the app file names, and destroys them. Fails if anything is not as it should be. Without --app, it is the app whose last drill is the longest ago.",
  options: [
    { flags: "-a, --app <name>", names: "app", description: "this app" },
    TARGET,
    { flags: "--at <time>", description: "the newest backup that was made then or before" },
    { flags: "--set <name>", description: "this backup" },
    { flags: "--detach", description: "do not wait" },
  ],
  examples: ["hibernaut backup drill", "hibernaut backup drill --app shop --target nas"],
  async run(context, _args, { target, at, set, detach }) {
    const { namedApp: app } = context;
    const client = await context.client();
    const name = target ?? (await onlyTarget(client)).name;
    const begun = await client.startDrill(name, given({ app_name: app, set, at: momentOf(at) }));
    if (detach === true)
      return { document: begun, text: `A drill has begun. See how it ends: hibernaut backup targets show ${name}` };
    const ended = await followTarget(context, client, begun);
    const found = ended.last_drill;
    if (found === null || found.started_at !== begun.running?.started_at) throw notNoted(name);
    if (found.error !== null) {
      context.say(drillText(found));
      throw new CliError(found.error.code, found.error.message);
    }
    return { document: { target: name, ...found }, text: drillText(found) };
  },
});

function restoreText(restored: AppRestore, app: string): string {
  const { as, set, set_at: at, machines, volumes, replaced } = restored;
  const what = `${count(machines.length, "machine")} and ${count(volumes.length, "volume")}`;
  return lines(
    `Restored ${what} of ${app} as ${as}, from ${set ?? ""}${at === null ? "" : `, made at ${localTime(at)}`}.`,
    ...machines.map(({ id, name, without_memory: why }) =>
      why === null ? `  ${id} ${name} sleeps with its memory` : `  ${id} ${name} starts from scratch: ${why}`,
    ),
    machines.some(({ cordoned }) => cordoned) && "Those that were cordoned when they were backed up are cordoned.",
    replaced.length > 0 &&
      `${count(replaced.length, "machine")} from before ${replaced.length === 1 ? "is" : "are"} cordoned and kept: ${replaced.join(", ")}. Destroy them once you no longer need them: hibernaut machine destroy <id> --app ${as}`,
  );
}

const DRILLED = {
  passed: (app: string, set: string) => `${app} can be restored from ${set}.`,
  failed: (app: string, set: string) => `${app} cannot be restored from ${set}.`,
  untried: (app: string, set: string) =>
    `${app} was restored from ${set}, and nothing of it tried: no machine of it runs, sleeps or is started by requests.`,
};

/** What a drill found, one line for each machine and each count. */
function drillText({ app_name: app, set, machines, counts, outcome }: BackupDrill): string {
  return lines(
    DRILLED[outcome](app === "" ? "An app" : app, set ?? "there"),
    ...machines.map(({ name, health, start, took_ms: took, note }) => {
      const how = health === "healthy" ? `healthy after ${took ?? 0} ms (${start ?? ""})` : health;
      return `  ${name}: ${how}${note === null ? "" : `: ${note}`}`;
    }),
    ...counts.map(({ machine, name, value, minimum, before, note }) => {
      const line = `  ${name} in ${machine}: ${value ?? note ?? "unknown"}, at least ${minimum}${before === null ? "" : `, ${before} in the drill before`}`;
      return note === null ? line : style("red", line, process.stdout);
    }),
  );
}

function momentOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = new Date(writtenTime(text));
  if (Number.isNaN(time.getTime()))
    throw new UsageError(`"${text}" is not a time. Write it as in --at 2026-11-20T03:00.`);
  return time.toISOString();
}

function notNoted(target: string): CliError {
  return new CliError("aborted", `How it ended was not noted. See: hibernaut backup targets show ${target}`);
}
