/** `hibernaut machine metadata`: what is written about a machine for programs. */
import { command, type Noun } from "../command.ts";
import { UsageError } from "../failure.ts";
import { pairs } from "../machine-config.ts";
import { fields } from "../terminal.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const NAMED = { ...MACHINE, usage: "<id>", description: "the machine: id, name, or beginning of the id" };
const EFFECT = "At once, without a new version, a restart or the loss of a snapshot.";

const show = command({
  name: "show",
  summary: "Show a machine's metadata",
  arguments: [MACHINE],
  ofApp: true,
  examples: ["hibernaut machine metadata show 3f9c01ab22de41 --app shop"],
  async run(context, [word]) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    return shown(id, await client.getMetadata(context.app, id));
  },
});

const set = command({
  name: "set",
  summary: "Set metadata of a machine",
  description: EFFECT,
  arguments: [NAMED, { usage: "<KEY=value...>", description: "keys with their values" }],
  ofApp: true,
  examples: ["hibernaut machine metadata set 3f9c01ab22de41 team=search build=1207 --app shop"],
  async run(context, [word, ...texts]) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    return shown(id, await client.changeMetadata(context.app, id, pairs("metadata", texts)));
  },
});

const unset = command({
  name: "unset",
  summary: "Remove metadata of a machine",
  description: EFFECT,
  arguments: [NAMED, { usage: "<KEY...>", description: "the keys; one that is not there is left alone" }],
  ofApp: true,
  examples: ["hibernaut machine metadata unset 3f9c01ab22de41 build --app shop"],
  async run(context, [word, ...keys]) {
    const pair = keys.find((key) => key.includes("="));
    if (pair !== undefined) throw new UsageError(`\`${pair}\` has a value. Name the key alone.`);
    const client = await context.client();
    const { id } = await machineOf(context, word);
    const change = Object.fromEntries(keys.map((key) => [key, null]));
    return shown(id, await client.changeMetadata(context.app, id, change));
  },
});

function shown(id: string, metadata: Record<string, string>) {
  const rows = Object.entries(metadata).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    document: { machine_id: id, metadata },
    text: rows.length === 0 ? `Machine ${id} has no metadata.` : fields(rows),
  };
}

export const metadata: Noun = {
  name: "metadata",
  summary: "Show and change what is written about a machine for programs",
  commands: [show, set, unset],
};
