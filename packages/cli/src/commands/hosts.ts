/** `hibernaut hosts`: what is done with a host of a cluster as a whole. */
import type { DrainedHost, Evacuation } from "@hibernaut/client";
import { command, type Noun, type Result } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { CliError, UsageError } from "../failure.ts";
import { showingMoves } from "../moving.ts";
import { count, lines } from "../terminal.ts";

const HOST = { usage: "<host>", description: "the name of the host" };

const drain = command({
  name: "drain",
  summary: "Move all machines off a host",
  description:
    "For maintenance. The host takes no new machines until `hibernaut hosts undrain`. Its machines move one after the other, two at a time, with all they have. Machines with volumes stay, and are listed, unless you add --with-volumes.",
  arguments: [HOST],
  options: [{ flags: "--with-volumes", description: "move machines with volumes, too, and their volumes with them" }],
  examples: ["hibernaut hosts drain b", "hibernaut hosts drain b --with-volumes --json"],
  async run(context, [host = ""], { withVolumes }) {
    const client = await context.client();
    const interrupted = "The drain was interrupted. Machines that have moved stay where they are.";
    const document = await showingMoves(context, interrupted, (show, signal) =>
      client.drainHost(host, {
        ...{ withVolumes, signal },
        onProgress: ({ app_name: app, name, machine_id: _id, ...step }) => show({ what: `${app}/${name}`, ...step }),
      }),
    );
    return drained(host, document);
  },
});

const undrain = command({
  name: "undrain",
  summary: "Let a drained host take machines again",
  arguments: [HOST],
  examples: ["hibernaut hosts undrain b"],
  async run(context, [host = ""]) {
    await (await context.client()).undrainHost(host);
    return { document: { host }, text: `Host ${host} takes machines again.` };
  },
});

const evacuate = command({
  name: "evacuate",
  summary: "Give the machines of a lost host to other hosts",
  description:
    "For a host that will not come back. Its machines without volumes start from scratch on other hosts; what they had in memory and in files is given up. If the host does come back, it ends what others have taken.",
  arguments: [HOST],
  options: [{ flags: "--dead", description: "required: you know that the host's machines do not run any more" }, YES],
  examples: ["hibernaut hosts evacuate b --dead", "hibernaut hosts evacuate b --dead --yes --json"],
  async run(context, [host = ""], { dead = false, yes = false }) {
    if (!dead)
      throw new UsageError(
        `Make sure that host ${host} is off: a machine that still runs there would run twice. Then add --dead.`,
      );
    await agree(`The machines of host ${host} lose what they have in memory and in files.`, { yes, what: "changed" });
    return evacuated(host, await (await context.client()).evacuateHost(host));
  },
});

function drained(host: string, document: DrainedHost): Result {
  const { moved, stayed } = document;
  const text = lines(
    `${count(moved, "machine")} moved off host ${host}${stayed.length === 0 ? "" : `, ${stayed.length} stayed`}.`,
    ...stayed.map(({ app_name: app, name, machine_id: id, reason }) => `  ${app}/${name} (${id}): ${reason}`),
  );
  const message = `Not all machines of host ${host} could be moved. The reasons are above.`;
  return { document, text, failures: stayed.length === 0 ? [] : [new CliError("failed_precondition", message)] };
}

function evacuated(host: string, document: Evacuation): Result {
  const { machines } = document;
  if (machines.length === 0) return { document, text: `Host ${host} had no machines.` };
  const left = machines.filter(({ host: to }) => to === undefined).length;
  const text = lines(
    `${count(machines.length - left, "machine")} of host ${host} got another host${left === 0 ? "" : `, ${left} left behind`}.`,
    ...machines.map(({ app_name: app, name, machine_id: id, host: to, reason }) =>
      to === undefined ? `  ${app}/${name} (${id}) is left behind: ${reason}` : `  ${app}/${name} (${id}) is on ${to}`,
    ),
  );
  return { document, text };
}

export const hosts: Noun = {
  name: "hosts",
  summary: "Drain and evacuate the hosts of a cluster",
  commands: [drain, undrain, evacuate],
};
