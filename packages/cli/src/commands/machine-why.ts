/** `hibernaut machine why` and `machine clone`. */
import { urlsFrom } from "../answering.ts";
import { type Command, command } from "../command.ts";
import { copyMachine } from "../copying.ts";
import { WAIT_TIMEOUT_S } from "../defaults.ts";
import { WAITING } from "../waiting.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const why = command({
  name: "why",
  summary: "Say why a machine is awake, and why its last start was cold",
  arguments: [MACHINE],
  ofApp: true,
  examples: ["hibernaut machine why web --app shop", "hibernaut machine why --json | jq .awake.reason"],
  async run(context, [word]) {
    const client = await context.client();
    const machine = await machineOf(context, word);
    const [activity, app, health, { whyText }] = await Promise.all([
      client.getMachineActivity(context.app, machine.id),
      client.getApp(context.app),
      client.getHealth(),
      import("../why.ts"),
    ]);
    const document = { machine_id: machine.id, name: machine.name, ...activity, last_boot: machine.last_boot };
    const around = {
      urls: urlsFrom(client.apiUrl, app),
      draining: health.status === "draining",
      network: app.network?.name,
    };
    return { document, text: whyText(machine, activity, around) };
  },
});

const clone = command({
  name: "clone",
  summary: "Create a machine like another one, and start it",
  description:
    "The new machine has the same image and configuration, but no memory or files of the other. It gets volumes of the same names: those that no machine is using, with their data, or new and empty ones.",
  arguments: [MACHINE],
  options: [{ flags: "-n, --name <name>", description: "name of the new machine, unique within the app" }, ...WAITING],
  ofApp: true,
  examples: ["hibernaut machine clone web --app shop", "hibernaut machine clone web --name web-2 --app shop"],
  async run(context, [word], { name, waitTimeout = WAIT_TIMEOUT_S }) {
    const model = await machineOf(context, word);
    const { machine, text } = await copyMachine(context, model, { name, waitTimeout });
    return { document: machine, text };
  },
});

export const whyCommands: readonly Command[] = [why, clone];
