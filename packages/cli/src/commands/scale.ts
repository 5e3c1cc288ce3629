/** `hibernaut scale`: how many machines an app has, and how large they are. */
import type { Machine } from "@hibernaut/client";
import { MEMORY_MB } from "@hibernaut/domain/limits";
import { command, type Noun } from "../command.ts";
import { hostsAway, isUnreachable } from "../crashed.ts";
import { DEFAULT_CPUS, DEFAULT_MEMORY_MB, WAIT_TIMEOUT_S } from "../defaults.ts";
import { CliError } from "../failure.ts";
import { OUTPUT, outputTable } from "../output-format.ts";
import { quantityArgument } from "../quantity.ts";
import { megabytes } from "../terminal.ts";
import { count, GROUP, machinesOf, TIMEOUT } from "./scale-count.ts";

const memory = command({
  name: "memory",
  summary: "Set the memory of the machines",
  description:
    "Changes one machine at a time, like a deploy: a running machine is replaced, a sleeping one loses its snapshot.",
  arguments: [{ usage: "<size>", description: "memory in MB, or with a unit as in 512mb or 1gb" }],
  options: [GROUP, TIMEOUT],
  ofApp: true,
  examples: ["hibernaut scale memory 512mb --app shop"],
  async run(context, [text = ""], { group, waitTimeout = WAIT_TIMEOUT_S }) {
    // Checked before anything is announced, because the platform would refuse it at the first machine.
    const memoryMb = quantityArgument(text, { ...MEMORY_MB, unit: "mb" });
    const [{ rollOut }, { groupOf, isUp }, { planStages }] = await Promise.all([
      import("../deploy/rollout.ts"),
      import("../deploy/plan.ts"),
      import("../deploy/strategy.ts"),
    ]);
    const machines = await machinesOf(await context.client(), context.app, group);
    const others = machines.filter(({ config }) => (config.guest?.memory_mb ?? DEFAULT_MEMORY_MB) !== memoryMb);
    const away = others.filter(isUnreachable);
    const steps = others
      .filter((machine) => !isUnreachable(machine))
      .map((machine) => ({
        kind: "update" as const,
        group: groupOf(machine) ?? "",
        machine,
        config: { ...machine.config, guest: { ...machine.config.guest, memory_mb: memoryMb } },
        running: isUp(machine),
      }));
    const onStep = (line: string) => context.say(line);
    for (const { id, host } of away) context.say(`Machine ${id} stays as it is: its host ${host} is away.`);
    const document = await rollOut(context, planStages(steps, { strategy: "rolling" }), { waitTimeout, onStep });
    const again = `hibernaut scale memory ${text} --app ${context.app}${group === undefined ? "" : ` --group ${group}`}`;
    const said =
      document.length === 0 && away.length === 0
        ? `The machines of ${context.app} already have ${memoryMb} MB.`
        : `${document.length} machine(s) of ${context.app} now have ${memoryMb} MB.`;
    return { document, text: said, failures: away.length === 0 ? [] : [unchanged(away, again)] };
  },
});

const show = command({
  name: "show",
  summary: "Show the number and size of machines",
  options: [OUTPUT],
  ofApp: true,
  examples: ["hibernaut scale show --app shop"],
  async run(context, _args, options) {
    const { groupOf } = await import("../deploy/plan.ts");
    const machines = await (await context.client()).listMachines(context.app);
    const groups = Map.groupBy(machines, (machine) => {
      const { cpus = DEFAULT_CPUS, memory_mb: memoryMb = DEFAULT_MEMORY_MB } = machine.config.guest ?? {};
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
    return { document, text: outputTable([["GROUP", "COUNT", "CPUS", "MEMORY"], ...rows], options) };
  },
});

export const scale: Noun = {
  name: "scale",
  summary: "Change the number and size of an app's machines",
  commands: [show, count, memory],
};

function unchanged(away: readonly Machine[], again: string): CliError {
  const machines = away.map(({ id, host }) => `${id} (host ${host})`).join(", ");
  const hosts = [...new Set(hostsAway(away))];
  const [what, verb] = hosts.length === 1 ? [`host ${hosts[0]}`, "is"] : [`hosts ${hosts.join(" and ")}`, "are"];
  const message = `Not changed: ${machines}, because ${what} ${verb} away. Once ${what} ${verb} back, run \`${again}\`.`;
  return new CliError("host_unreachable", message);
}
