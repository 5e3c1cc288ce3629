/** `hibernaut top`: what all machines do, live. */
import { setTimeout as delay } from "node:timers/promises";
import type { HibernautClient, Machine, MachineState } from "@hibernaut/client";
import { command, timeOption } from "../command.ts";
import { isUnreachable, isWarm } from "../crashed.ts";
import { toFailure } from "../failure.ts";
import { INTERVAL_S, repeat, screen } from "../live.ts";
import { OUTPUT, outputTable } from "../output-format.ts";
import { FOOT, HEAD, type Sample, SPARE, topRows } from "../top.ts";

/** Before the first table, which needs two looks: CPU is what was used in between. In milliseconds. */
const ONCE_MS = 500;
/** Machines that it asks about at a time. */
const AT_ONCE = 20;

export const top = command({
  name: "top",
  summary: "Show what machines use, and what keeps them awake",
  description:
    "Draws the table again and again on a terminal, until Ctrl-C. Elsewhere, and with --once or --json, prints it once. CPU is what the machine's QEMU process used in between, 100 % being one CPU. Memory is what that process occupies of the host's RAM, which differs from the memory of the machine.",
  options: [
    { flags: "-a, --app <name>", description: "only machines of this app" },
    timeOption("-i, --interval <time>", "time between two tables", INTERVAL_S, "1m"),
    { flags: "--once", description: "print the table once" },
    OUTPUT,
  ],
  examples: ["hibernaut top", "hibernaut top --app shop --once"],
  async run(context, _args, { interval = INTERVAL_S, once = false, ...options }) {
    const client = await context.client();
    const live = process.stdout.isTTY && !once && !context.json;
    let before = await samplesOf(client, context.namedApp);
    await delay(ONCE_MS);
    const look = async () => {
      const samples = await samplesOf(client, context.namedApp);
      const text = `${outputTable([HEAD, ...topRows([...samples.values()], before)], options, SPARE)}\n\n${FOOT}`;
      before = samples;
      return {
        document: [...samples.values()].map(({ machine, activity }) => ({ ...named(machine), ...activity })),
        text,
      };
    };
    return live ? repeat(look, { seconds: interval, show: screen() }) : look();
  },
});

/** By the machine's id, in the order of the list. */
async function samplesOf(client: HibernautClient, app: string | undefined): Promise<Map<string, Sample>> {
  const machines = await (app === undefined ? client.listAllMachines() : client.listMachines(app));
  const samples = new Map<string, Sample>();
  for (let first = 0; first < machines.length; first += AT_ONCE) {
    const some = machines.slice(first, first + AT_ONCE);
    for (const sample of await Promise.all(some.map((machine) => sampleOf(client, machine))))
      samples.set(sample.machine.id, sample);
  }
  return samples;
}

/**
 * States without a process, in which a platform may have thousands of machines: nothing needs to be asked about them,
 * unless they are kept warm.
 */
const AT_REST: ReadonlySet<MachineState> = new Set(["created", "suspended", "stopped", "failed"]);

async function sampleOf(client: HibernautClient, machine: Machine): Promise<Sample> {
  const { state } = machine;
  const at = () => performance.now();
  const still = { state, awake: null, process: null };
  if (isUnreachable(machine) || (AT_REST.has(state) && !isWarm(machine))) return { machine, activity: still, at: at() };
  try {
    return { machine, activity: await client.getMachineActivity(machine.app_name, machine.id), at: at() };
  } catch (error) {
    const { error: code } = toFailure(error);
    // Since it was listed, it was destroyed, or its host went away.
    if (code === "not_found") return { machine, activity: { ...still, state: "destroyed" }, at: at() };
    if (code !== "host_unreachable") throw error;
    return { machine: { ...machine, host_state: "unreachable" }, activity: still, at: at() };
  }
}

function named({ id, name, app_name: app, host_state: host }: Machine) {
  return { machine_id: id, name, app_name: app, ...(host !== undefined && { host_state: host }) };
}
