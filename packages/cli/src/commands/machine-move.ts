/** `hibernaut machine move`: to another host of the cluster. */
import { command } from "../command.ts";
import { showingMoves } from "../moving.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

export const move = command({
  name: "move",
  summary: "Move a machine to another host of the cluster",
  description:
    "The machine takes its memory, its files and its logs along, and keeps its ID, name and address. With --with-volumes, its volumes move, too; otherwise, a machine with a volume is not moved. One that runs is suspended for the move and resumes on the other host. Requests that arrive meanwhile are held.",
  arguments: [MACHINE],
  options: [
    { flags: "--host <name>", description: "the host to move to (default: the one with the most room)" },
    {
      flags: "--cold",
      description: "move without the memory: the machine is stopped, and starts from scratch there with its files",
    },
    { flags: "--with-volumes", description: "take the machine's volumes and their snapshots along" },
  ],
  ofApp: true,
  examples: [
    "hibernaut machine move 3f9c01ab22de41 --host b --app shop",
    "hibernaut machine move web --host b --cold --app shop",
    "hibernaut machine move db --host b --with-volumes --app shop",
  ],
  async run(context, [word], { host, cold, withVolumes }) {
    const { id, name } = await machineOf(context, word);
    const client = await context.client();
    const document = await showingMoves(context, "The move was interrupted.", (show, signal) => {
      const where = { host, cold, withVolumes, signal };
      return client.moveMachine(context.app, id, { ...where, onProgress: (step) => show({ what: name, ...step }) });
    });
    return { document, text: `Machine ${id} (${name}) is on host ${document.host} now.` };
  },
});
