/** `hibernaut machine fork`: more machines that continue from where one is. */
import { bornText, started } from "../births.ts";
import { command } from "../command.ts";
import { pairs } from "../machine-config.ts";
import { given } from "../option-values.ts";
import { WAITING } from "../waiting.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

export const fork = command({
  name: "fork",
  summary: "Make machines that continue from where one is",
  description:
    "Each fork has the memory and the disk that the machine has at this moment, and a name, an id, addresses and randomness of its own. The machine itself continues; a running one pauses for a moment. Its connections stay its own; in the forks, they are reset.",
  arguments: [MACHINE],
  options: [
    { flags: "--count <number>", description: "how many machines to make (default: 1)", minimum: 1 },
    { flags: "-n, --name <name>", description: "name of the fork; of several, each gets it with a number" },
    { flags: "-e, --env <NAME=value>", description: "for programs that start later; may repeat", repeats: true },
    { flags: "--skip-launch", description: "leave the forks asleep" },
    { flags: "--cordon", description: "give the forks no requests" },
    ...WAITING,
  ],
  ofApp: true,
  examples: [
    "hibernaut machine fork 3f9c01ab22de41 --app shop",
    "hibernaut machine fork web-1 --count 5 --name branch --cordon",
  ],
  async run(context, [word], { count, name, env, skipLaunch, cordon, ...waiting }) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    const request = {
      ...given({ count, name, skip_launch: skipLaunch, skip_service_registration: cordon }),
      ...(env !== undefined && { env: pairs("--env", env) }),
    };
    const work = async () => started(context, await client.forkMachine(context.app, id, request), waiting);
    const forks = await context.progress(`Forking machine ${id}`, work());
    return { document: forks, text: bornText(forks) };
  },
});
