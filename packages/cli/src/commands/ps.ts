/** `hibernaut ps` and `hibernaut status`: all apps at a glance. */
import type { Machine } from "@hibernaut/client";
import { type Command, command, type Result } from "../command.ts";
import type { Context } from "../context.ts";
import { isCrashLoop, isUnreachable, isWarm, stateCell } from "../crashed.ts";
import { LISTING, type ListOptions, listText } from "../listing.ts";
import { WATCH, watched } from "../live.ts";
import { memoryMb, WIDE_MACHINE } from "../machine-columns.ts";
import { OUTPUT, type OutputOptions } from "../output-format.ts";
import { ago, fields, megabytes, shortImage } from "../terminal.ts";

const ps = command({
  name: "ps",
  aliases: ["ls"],
  summary: "List the machines of all apps",
  options: [
    // Unlike the --app of other commands: without it, all apps are listed, not the one of this directory.
    { flags: "-a, --app <name>", description: "only machines of this app" },
    ...LISTING,
    WATCH,
  ],
  examples: ["hibernaut ps", "hibernaut ps --app shop", "hibernaut ps -o wide", "hibernaut ps --watch"],
  run: (context, _args, options) => watched(context, options, () => listMachines(context, options)),
});

async function listMachines(context: Context, options: ListOptions): Promise<Result> {
  const client = await context.client();
  const { namedApp: app } = context;
  const machines = await (app === undefined ? client.listAllMachines() : client.listMachines(app));
  const listing = {
    head: ["APP", "ID", "NAME", "STATE", "MEMORY", "IMAGE", "UPDATED"],
    row: (machine: Machine) => [
      machine.app_name,
      machine.id,
      machine.name,
      stateCell(machine),
      `${memoryMb(machine)} MB`,
      shortImage(machine.image.ref),
      ago(machine.updated_at),
    ],
    wide: WIDE_MACHINE,
    spare: ["MEMORY", "UPDATED", "IMAGE"],
    id: (machine: Machine) => machine.id,
    empty:
      app === undefined
        ? "There are no machines yet. Create one: hibernaut machine run <image> --app <name>"
        : `App ${app} has no machines.`,
  };
  return { document: machines, text: listText(machines, listing, options) };
}

const status = command({
  name: "status",
  summary: "Show the platform: its address, its host and what it is running; or an app",
  description: "With --app, shows where the app answers, and the state, the last start and the checks of its machines.",
  options: [{ flags: "-a, --app <name>", description: "show this app instead" }, OUTPUT, WATCH],
  examples: ["hibernaut status", "hibernaut status --app shop --watch", "hibernaut status --json"],
  run: (context, _args, options) => watched(context, options, () => showStatus(context, options)),
});

async function showStatus(context: Context, options: OutputOptions): Promise<Result> {
  const client = await context.client();
  if (context.namedApp !== undefined) {
    const { appStatus } = await import("../app-status.ts");
    return appStatus(client, context.namedApp, options);
  }
  const [health, apps, machines] = await Promise.all([client.getHealth(), client.listApps(), client.listAllMachines()]);
  const running = machines.filter((machine) => machine.state === "running" && !isUnreachable(machine));
  const warm = machines.filter(isWarm).length;
  const snapshots = machines.flatMap(({ snapshot }) => snapshot ?? []);
  const document = {
    api_url: client.apiUrl,
    proxy_url: health.proxy_url,
    version: health.version,
    region: health.region,
    accelerator: health.accelerator,
    network: health.network.mode,
    draining: health.status === "draining",
    apps: apps.length,
    machines: countByState(machines),
    crash_loops: machines.filter(isCrashLoop).length,
    running_memory_mb: running.reduce((sum, machine) => sum + memoryMb(machine), 0),
    warm,
    snapshots: snapshots.length,
    snapshot_bytes: snapshots.reduce((sum, { size_bytes: bytes }) => sum + bytes, 0),
  };
  const states = Object.entries(document.machines).map(([state, count]) => `${count} ${state}`);
  const loops = document.crash_loops === 0 ? "" : `; ${document.crash_loops} in a crash loop, see hibernaut ps`;
  const text = fields([
    ["API", document.api_url],
    ["proxy", document.proxy_url ?? "in separate processes"],
    ["version", document.version],
    ["accelerator", `${document.accelerator}: ${health.accelerator_reason}`],
    ["drain", document.draining ? "no machine is started or created; `hibernaut undrain` ends it" : undefined],
    ["network", `${document.network}: ${health.network.reason}`],
    ["apps", String(document.apps)],
    ["machines", `${states.join(", ") || "none"}${loops}`],
    ["memory", `${document.running_memory_mb} MB in running machines${warm === 0 ? "" : `; ${warmText(warm)}`}`],
    ["snapshots", `${document.snapshots}, ${megabytes(document.snapshot_bytes)}`],
  ]);
  return { document, text };
}

function warmText(count: number): string {
  return `${count} sleeping ${count === 1 ? "machine is" : "machines are"} kept warm, see hibernaut top`;
}

function countByState(machines: readonly Machine[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const machine of machines) {
    const state = isUnreachable(machine) ? "unreachable" : machine.state;
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

export const overviewCommands: readonly Command[] = [ps, status];
