/** `hibernaut machine restore`: back to the state that a template has. */
import { bornText, started } from "../births.ts";
import { command } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { UsageError } from "../failure.ts";
import { given } from "../option-values.ts";
import { WAITING } from "../waiting.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

export const restore = command({
  name: "restore",
  summary: "Let a machine continue where a template stopped",
  description:
    "Gives the machine the memory, the disk and the configuration of a template. One that runs ends as if its power was cut. It keeps its id, name and address. What it had in memory and on its disk is gone, so the command asks first; without a terminal, it needs --yes.",
  arguments: [MACHINE],
  options: [
    { flags: "-t, --template <id>", description: "the template: id, name, or beginning of the id" },
    { flags: "--skip-launch", description: "leave the machine asleep" },
    YES,
    ...WAITING,
  ],
  ofApp: true,
  examples: [
    "hibernaut machine restore 3f9c01ab22de41 --template before-upgrade --app shop",
    "hibernaut machine restore web-1 --template before-upgrade --skip-launch --yes",
  ],
  async run(context, [word], { template, skipLaunch, yes = false, ...waiting }) {
    if (template === undefined)
      throw new UsageError(
        "Say which template the machine is restored from: `--template <id>`. `hibernaut templates list` lists them.",
      );
    const client = await context.client();
    const { id, name } = await machineOf(context, word);
    await agree(`Machine ${id} (${name}) loses its memory and its disk, and continues from template ${template}.`, {
      yes,
      what: "changed",
    });
    const request = { template, ...given({ skip_launch: skipLaunch }) };
    const work = async () => started(context, [await client.restoreMachine(context.app, id, request)], waiting);
    const [machine] = await context.progress(`Restoring machine ${id}`, work());
    return { document: machine, text: bornText(machine === undefined ? [] : [machine]) };
  },
});
