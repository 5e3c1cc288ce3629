/** `hibernaut scale`: how many machines an app has, and how large they are. */
import type { HibernautClient, Machine } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { CliError, UsageError } from "../failure.ts";
import { megabytes, table } from "../terminal.ts";
import { waitFor } from "../waiting.ts";

const WAIT_TIMEOUT_S = 120;
/** Of a machine whose configuration names none. */
const DEFAULT_MEMORY_MB = 256;
/** Those that nobody uses go first. */
const GOING_ORDER = ["failed", "created", "stopped", "suspended"];

const GROUP = { flags: "-g, --group <name>", description: "only machines of this process group (default: all)" };
const TIMEOUT = {
  flags: "--wait-timeout <seconds>",
  description: `how long a machine may take (default: ${WAIT_TIMEOUT_S})`,
  minimum: 1,
};

interface ScaleOptions {
  group?: string;
  waitTimeout?: number;
}

const count = command<ScaleOptions>({
  name: "count",
  summary: "Set how many machines there are",
  description:
    "New ones are made like the newest there is, and started. Machines that are too many are destroyed, sleeping ones first.",
  arguments: [{ usage: "<count>", description: "of each process group, or of the one named with --group" }],
  options: [GROUP, TIMEOUT],
  ofApp: true,
  examples: ["hibernaut scale count 3 --app shop", "hibernaut scale count 0 --app shop --group worker"],
  async run(context, [text = ""], { group, waitTimeout = WAIT_TIMEOUT_S }) {
    const wanted = wholeNumber(text, 0);
    const client = await context.client();
    const [{ groupOf }, { withVolumeNames }] = await Promise.all([
      import("../deploy/plan.ts"),
      import("../deploy/mounts.ts"),
    ]);
    const machines = await own(client, context.app, group);
    const document: { machine_id: string; action: "created" | "destroyed" }[] = [];
    for (const members of Map.groupBy(machines, (machine) => groupOf(machine) ?? "").values()) {
      const model = members.at(-1) as Machine;
      for (const { id } of members.toSorted(byUse).slice(0, Math.max(0, members.length - wanted))) {
        await client.destroyMachine(context.app, id, { force: true });
        await context.progress(`Destroying ${id}`, waitFor(context, id, ["destroyed"], { waitTimeout }));
        document.push({ machine_id: id, action: "destroyed" });
      }
      for (let missing = wanted - members.length; missing > 0; missing -= 1) {
        const { id } = await client.createMachine(context.app, { config: withVolumeNames(model.config) });
        const started = waitFor(context, id, ["running", "stopped", "failed"], { waitTimeout });
        await context.progress(`Starting machine ${id}`, started);
        document.push({ machine_id: id, action: "created" });
      }
    }
    const lines = document.map(({ machine_id: id, action }) => `Machine ${id} is ${action}.`);
    return { document, text: lines.join("\n") || `App ${context.app} has ${wanted} machine(s) already.` };
  },
});

const memory = command<ScaleOptions>({
  name: "memory",
  summary: "Set the memory of the machines, in MB",
  description: "One by one, as a deploy does: a running machine is replaced, a sleeping one loses its snapshot.",
  arguments: [{ usage: "<mb>", description: "memory in MB" }],
  options: [GROUP, TIMEOUT],
  ofApp: true,
  examples: ["hibernaut scale memory 512 --app shop"],
  async run(context, [text = ""], { group, waitTimeout = WAIT_TIMEOUT_S }) {
    const memoryMb = wholeNumber(text, 1);
    const [{ rollOut, withMemory }, { groupOf, isUp }] = await Promise.all([
      import("../deploy/rollout.ts"),
      import("../deploy/plan.ts"),
    ]);
    const machines = await own(await context.client(), context.app, group);
    const steps = machines
      .filter((machine) => (machine.config.guest?.memory_mb ?? DEFAULT_MEMORY_MB) !== memoryMb)
      .map((machine) => ({
        kind: "update" as const,
        group: groupOf(machine) ?? "",
        machine,
        config: withMemory(machine.config, memoryMb),
        running: isUp(machine),
      }));
    const onStep = (line: string) => void process.stderr.write(`${line}\n`);
    const document = await rollOut(context, steps, { strategy: "rolling", waitTimeout, onStep });
    return { document, text: `${document.length} machine(s) of ${context.app} have ${memoryMb} MB now.` };
  },
});

const show = command({
  name: "show",
  summary: "Show how many machines there are, and how large",
  ofApp: true,
  examples: ["hibernaut scale show --app shop"],
  async run(context) {
    const { groupOf } = await import("../deploy/plan.ts");
    const machines = await (await context.client()).listMachines(context.app);
    const groups = Map.groupBy(machines, (machine) => {
      const { cpus = 1, memory_mb: memoryMb = DEFAULT_MEMORY_MB } = machine.config.guest ?? {};
      return JSON.stringify([groupOf(machine) ?? "", cpus, memoryMb]);
    });
    const document = [...groups].map(([key, members]) => {
      const [group, cpus, memoryMb] = JSON.parse(key) as [string, number, number];
      return { group: group === "" ? null : group, count: members.length, cpus, memory_mb: memoryMb };
    });
    const rows = document.map((row) => [
      row.group ?? "-",
      String(row.count),
      String(row.cpus),
      megabytes(row.memory_mb * 1024 * 1024),
    ]);
    return { document, text: table([["GROUP", "COUNT", "CPUS", "MEMORY"], ...rows]) };
  },
});

async function own(client: HibernautClient, app: string, group: string | undefined): Promise<Machine[]> {
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

function byUse(a: Machine, b: Machine): number {
  const rank = ({ state }: Machine) => (GOING_ORDER.includes(state) ? GOING_ORDER.indexOf(state) : GOING_ORDER.length);
  return rank(a) - rank(b);
}

function wholeNumber(text: string, least: number): number {
  const value = Number(text);
  if (!/^\d{1,6}$/.test(text) || value < least)
    throw new UsageError(`\`${text}\` is no whole number of at least ${least}.`);
  return value;
}

/** The commands about an app's size. */
export const scale: Noun = {
  name: "scale",
  summary: "How many machines an app has, and how large",
  commands: [show, count, memory],
};
