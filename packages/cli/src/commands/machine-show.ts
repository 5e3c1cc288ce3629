/** `hibernaut machine list`, `status` and `events`: commands that change nothing. */
import type { FileConfig, Machine, MachineConfig, MachineState, Sandbox, ServiceConfig } from "@hibernaut/client";
import { type Command, command, type Result } from "../command.ts";
import type { Context } from "../context.ts";
import { stateCell, stateText } from "../crashed.ts";
import { DEFAULT_CPUS, DEFAULT_IDLE_TIMEOUT_S, DEFAULT_MEMORY_MB } from "../defaults.ts";
import { LISTING, type ListOptions, listText } from "../listing.ts";
import { WATCH, watched } from "../live.ts";
import { localTime } from "../local-time.ts";
import { bootText, placeOf, WIDE_MACHINE } from "../machine-columns.ts";
import { pairs } from "../machine-config.ts";
import { given, separated } from "../option-values.ts";
import { outputTable, TABLE } from "../output-format.ts";
import { sandboxEnd } from "../sandbox-end.ts";
import { ago, fields, megabytes, shortImage } from "../terminal.ts";
import { insteadOfSuspend } from "../unsuspendable.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List the machines of an app",
  options: [
    ...LISTING,
    { flags: "--state <state>", description: "only those in this state; several are separated by commas" },
    { flags: "--metadata <KEY=value>", description: "only those with this metadata; may repeat", repeats: true },
    { flags: "--region <region>", description: "only those of this region" },
    WATCH,
  ],
  ofApp: true,
  examples: [
    "hibernaut machine list --app shop",
    "hibernaut machine list --app shop --state running,suspended --metadata team=search",
    "hibernaut machine list --app shop -o wide",
    "hibernaut machine list --app shop --watch=5",
    "HIBERNAUT_APP=shop hibernaut machine list --json",
  ],
  run: (context, _args, options) => watched(context, options, () => listMachines(context, options)),
});

interface Filter {
  state?: string;
  metadata?: string[];
  region?: string;
}

async function listMachines(
  context: Context,
  { state, metadata, region, ...options }: ListOptions & Filter,
): Promise<Result> {
  const labels = metadata && pairs("--metadata", metadata);
  const states = state === undefined ? undefined : (separated([state]) as MachineState[]);
  const filter = given({ state: states, metadata: labels, region });
  const machines = await (await context.client()).listMachines(context.app, filter);
  const place = placeOf(machines);
  const listing = {
    head: ["ID", "NAME", "STATE", place.title, "IMAGE", "UPDATED"],
    row: (machine: Machine) => [
      machine.id,
      machine.name,
      stateCell(machine),
      place.cell(machine),
      shortImage(machine.image.ref),
      ago(machine.updated_at),
    ],
    wide: WIDE_MACHINE,
    spare: [place.title, "UPDATED", "IMAGE"],
    id: (machine: Machine) => machine.id,
    empty: `App ${context.app} has no ${Object.keys(filter).length === 0 ? "" : "such "}machines.`,
  };
  return { document: machines, text: listText(machines, listing, options) };
}

const status = command({
  name: "status",
  aliases: ["show"],
  summary: "Show a machine",
  description: "Also shows whether the machine can be suspended and, if not, every reason why.",
  arguments: [MACHINE],
  ofApp: true,
  examples: [
    "hibernaut machine status 3f9c01ab22de41 --app shop",
    "hibernaut machine status 3f9c01ab22de41 --json | jq .state",
  ],
  async run(context, [word]) {
    const machine = await machineOf(context, word);
    return { document: machine, text: statusText(machine) };
  },
});

const events = command({
  name: "events",
  summary: "Show a machine's history, newest first",
  arguments: [MACHINE],
  options: [{ flags: "--limit <count>", description: "how many events (default: 20)", minimum: 1 }, ...TABLE],
  ofApp: true,
  examples: ["hibernaut machine events 3f9c01ab22de41 --app shop --limit 5"],
  async run(context, [word], { limit = 20, ...options }) {
    const { id } = await machineOf(context, word);
    const history = await (await context.client()).listMachineEvents(context.app, id, { limit });
    const rows = history.map(({ at, type, from, to, details }) => [
      localTime(at),
      type,
      from === null ? to : `${from} -> ${to}`,
      Object.keys(details).length === 0 ? "" : JSON.stringify(details),
    ]);
    return { document: history, text: outputTable([["AT", "EVENT", "STATE", "DETAILS"], ...rows], options) };
  },
});

function statusText(machine: Machine): string {
  const { suspend, snapshot, last_boot: boot, config } = machine;
  return fields([
    ["id", machine.id],
    ["name", machine.name],
    ["app", machine.app_name],
    ["state", stateText(machine)],
    ["image", `${shortImage(machine.image.ref)} (${machine.image.digest})`],
    ["size", sizeText(config)],
    ["cordoned", machine.cordoned ? "yes: the proxy sends it no requests" : undefined],
    ["can suspend", suspend.eligible ? "yes" : `no: ${suspend.reasons.join("; ")}`],
    ["guest bundle", bundleText(machine)],
    ["snapshot", snapshot ? `${megabytes(snapshot.size_bytes)}, ${ago(snapshot.created_at)}` : "none"],
    ["last start", boot ? `${bootText(boot)}, ${ago(boot.at)} (${boot.reason})` : "never"],
    ["prewarm", prewarmText(machine)],
    ["kept awake", keepAwakeText(machine)],
    ["lease", machine.lease && leaseText(machine.lease)],
    ["sandbox", machine.sandbox && sandboxText(machine.sandbox)],
    ["wakes", machine.wake_at && `at ${localTime(machine.wake_at)}, if it sleeps by then`],
    ["schedule", config.schedule && scheduleText(machine)],
    ...(config.services ?? []).map((service) => ["service", serviceText(service)] as const),
    ...(config.files ?? []).map((file) => ["file", fileText(file)] as const),
    ["when idle", insteadOfSuspend(machine)],
    ...machine.checks.map((check) => ["check", checkText(check)] as const),
    ["address", machine.private_address],
    ["region", machine.region],
    ["host", machine.host],
    ["version", machine.version],
    ["created", localTime(machine.created_at)],
    ["updated", localTime(machine.updated_at)],
  ]);
}

function sandboxText(sandbox: Sandbox): string {
  const labels = Object.entries(sandbox.metadata).map(([name, value]) => `${name}=${value}`);
  return [`from template ${sandbox.template}, ${sandboxEnd(sandbox)}`, ...labels].join(", ");
}

/** Said while it matters: a prewarm that is done shows in the snapshot. */
function prewarmText({ prewarm }: Machine): string | undefined {
  if (prewarm?.status === "pending") return "it sleeps again once the new version works";
  return prewarm?.status === "failed" ? `failed: ${prewarm.reason}` : undefined;
}

function checkText({ name, status: verdict, output }: Machine["checks"][number]): string {
  return `${name} ${verdict}: ${output.replace(/\s+/g, " ").slice(0, 100)}`;
}

function sizeText({ guest, init }: MachineConfig): string {
  const swapMb = init?.swap_size_mb ?? 0;
  const size = `${guest?.cpus ?? DEFAULT_CPUS} CPU, ${guest?.memory_mb ?? DEFAULT_MEMORY_MB} MB`;
  return swapMb === 0 ? size : `${size}, and ${swapMb} MB of swap`;
}

function scheduleText({ config, next_run: next }: Machine): string {
  const zone = config.schedule_timezone ?? "UTC";
  return `${config.schedule} (${zone}), ${next === null ? "no next run" : `next run ${localTime(next)}`}`;
}

function bundleText({ guest_bundle: bundle }: Machine): string {
  if (bundle.current) return `${bundle.version}, current`;
  return `${bundle.version}, ${bundle.update_pending ? "updated at the next cold start" : "older than the current one"}`;
}

function serviceText({ internal_port: port, autostop = "off", autostart = true, idle_timeout: idle }: ServiceConfig) {
  const sleep =
    autostop === "off"
      ? "never put to sleep"
      : `${autostop} after ${idle ?? DEFAULT_IDLE_TIMEOUT_S} s without a request`;
  return `port ${port}, ${sleep}${autostart ? "" : ", not started by requests"}`;
}

function fileText({ guest_path: path, raw_value: raw, secret_name: secret }: FileConfig): string {
  return `${path}, ${raw === undefined ? `from the secret ${secret}` : `${Buffer.from(raw, "base64").length} bytes`}`;
}

function keepAwakeText({ keep_awake: kept }: Machine): string | undefined {
  return kept === null ? undefined : `until ${localTime(kept.until)}${kept.reason === "" ? "" : `: ${kept.reason}`}`;
}

/** Says why an action answers `lease_held`. */
function leaseText({ owner, description, expires_at: end }: NonNullable<Machine["lease"]>): string {
  const what = description === "" ? "" : ` (${description})`;
  return `token ${owner}${what} until ${localTime(end)}: nobody else changes the machine`;
}

export const showCommands: readonly Command[] = [list, status, events];
