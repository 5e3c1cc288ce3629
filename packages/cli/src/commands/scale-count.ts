/** `hibernaut scale count`: adds machines, or removes some after saying which. */
import type { HibernautClient, Machine, Volume } from "@hibernaut/client";
import { requireAllHosts } from "../absent-hosts.ts";
import { command, type Option, timeOption } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import type { Context } from "../context.ts";
import { copyMachine } from "../copying.ts";
import { hostsAway, isUnreachable } from "../crashed.ts";
import { WAIT_TIMEOUT_S } from "../defaults.ts";
import { CliError } from "../failure.ts";
import { quantityArgument } from "../quantity.ts";
import { chooseGoing, type Member, memberOf } from "../scaling.ts";
import { megabytes } from "../terminal.ts";
import { waitFor } from "../waiting.ts";

export const GROUP = {
  flags: "-g, --group <name>",
  description: "only machines of this process group (default: all)",
} as const satisfies Option;
export const TIMEOUT = timeOption("--wait-timeout <time>", "how long a machine may take", WAIT_TIMEOUT_S);

interface Done {
  machine_id: string;
  action: "created" | "destroyed";
  /** Volumes of a destroyed machine, which are kept. */
  volumes_left?: string[];
  /** New, empty volumes of a created machine. */
  volumes_new?: string[];
  text: string;
}

export const count = command({
  name: "count",
  summary: "Set the number of machines",
  description:
    "New machines are copies of the newest one, and are started: from the template of its release, if a deploy has made one. When there are too many, machines without volumes are destroyed first, then those whose volumes hold the least data, then the newest. The command lists them and asks first; without a terminal, it needs --yes. Their volumes are kept.",
  arguments: [{ usage: "<count>", description: "machines in each process group, or in the one named with --group" }],
  options: [GROUP, TIMEOUT, YES],
  ofApp: true,
  examples: ["hibernaut scale count 3 --app shop", "hibernaut scale count 0 --app shop --group worker --yes"],
  async run(context, [text = ""], { group, waitTimeout = WAIT_TIMEOUT_S, yes = false }) {
    const wanted = quantityArgument(text, { minimum: 0 });
    const client = await context.client();
    const { groupOf } = await import("../deploy/plan.ts");
    const machines = await machinesOf(client, context.app, group);
    let silent: string[] = [];
    const volumes = await client.listVolumes(context.app, { onMissing: (hosts) => (silent = hosts) });
    const missing = [...new Set([...hostsAway(machines), ...silent])].toSorted();
    const groups = [...Map.groupBy(machines, (machine) => groupOf(machine) ?? "").values()];
    const going = groups.flatMap((members) =>
      chooseGoing(
        members.map((machine) => memberOf(machine, volumes)),
        members.length - wanted,
      ),
    );
    const models = groups.map((members) => ({
      members,
      model: members.findLast((machine) => !isUnreachable(machine)),
    }));
    const noModel = models.some(({ members, model }) => members.length < wanted && model === undefined);
    // Everything is decided and confirmed before the first machine is destroyed.
    if (going.length > 0)
      requireAllHosts(missing, "which machines are destroyed depends on the machines and volumes that are there");
    if (noModel) requireAllHosts(missing, "has the only machines that could be copied");
    if (going.length > 0) await agree(warning(going), { yes, what: "destroyed" });
    const done: Done[] = [];
    for (const member of going) done.push(await destroy(context, member, waitTimeout));
    for (const { members, model } of models) {
      if (model === undefined) continue;
      for (let more = wanted - members.length; more > 0; more -= 1)
        done.push(await create(context, model, waitTimeout));
    }
    const lines = done.map((one) => one.text).join("\n");
    return {
      document: done.map(({ text: _text, ...rest }) => rest),
      text: lines || `App ${context.app} already has ${wanted} machine(s).`,
    };
  },
});

/** The machines of the app, or of one of its process groups. At least one. */
export async function machinesOf(client: HibernautClient, app: string, group: string | undefined): Promise<Machine[]> {
  const { groupOf } = await import("../deploy/plan.ts");
  const machines = (await client.listMachines(app)).filter(
    (machine) => group === undefined || groupOf(machine) === group,
  );
  if (machines.length > 0) return machines;
  throw new CliError(
    "failed_precondition",
    `App ${app} has no machines to scale${group ? ` in process group ${group}` : ""}. Deploy it first.`,
  );
}

async function destroy(context: Context, { machine: { id }, volumes }: Member, waitTimeout: number): Promise<Done> {
  await (await context.client()).destroyMachine(context.app, id, { force: true });
  await context.progress(`Destroying ${id}`, waitFor(context, id, ["destroyed"], { waitTimeout }));
  const left = volumes.map(
    (volume) =>
      `Its volume ${volumeText(volume)} is kept, without a machine. To destroy it and its data: hibernaut volumes destroy ${volume.id} --app ${context.app}`,
  );
  return {
    machine_id: id,
    action: "destroyed",
    volumes_left: volumes.map((volume) => volume.id),
    text: [`Destroyed machine ${id}.`, ...left].join("\n"),
  };
}

async function create(context: Context, model: Machine, waitTimeout: number): Promise<Done> {
  const { templateLike } = await import("../deploy/release-templates.ts");
  const template = templateLike(model, await (await context.client()).listTemplates(context.app));
  const { machine, newVolumes, text } = await copyMachine(context, model, { waitTimeout, template: template?.id });
  return { machine_id: machine.id, action: "created", volumes_new: newVolumes, text };
}

function warning(going: readonly Member[]): string {
  const lines = going.map(({ machine, volumes }) => {
    const disks = volumes.length === 0 ? "" : `, with volume ${volumes.map(volumeText).join(" and ")}`;
    return `  ${machine.id} ${machine.name}, ${machine.state}${disks}`;
  });
  const stay = going.some(({ volumes }) => volumes.length > 0)
    ? "Their volumes are kept, without a machine."
    : "Their data is not kept.";
  const head = going.length === 1 ? "This machine will be destroyed:" : "These machines will be destroyed:";
  return [head, ...lines, stay].join("\n");
}

function volumeText({ id, name, size_gb: size, used_bytes: used }: Volume): string {
  return `${id} (${name}, ${size} GB, ${megabytes(used)} used)`;
}
