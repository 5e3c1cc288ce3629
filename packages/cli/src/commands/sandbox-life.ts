/** `hibernaut sandbox create`, `ls`, `exec`, `cp`, `pause`, `fork` and `kill`: the words of machines, for sandboxes. */
import type { Machine } from "@hibernaut/client";
import { DEFAULT_SANDBOX_TIMEOUT_S, SANDBOX_TIMEOUT_S } from "@hibernaut/domain/limits";
import { bornText, started } from "../births.ts";
import { type Command, command, timeOption } from "../command.ts";
import { stateCell } from "../crashed.ts";
import { listCommand } from "../listing.ts";
import { mountOf, pairs } from "../machine-config.ts";
import { given } from "../option-values.ts";
import { sandboxEnd } from "../sandbox-end.ts";
import { ago } from "../terminal.ts";
import { WAITING, waitFor } from "../waiting.ts";
import { forEachMachine, NAMED_MACHINES } from "../which-machine.ts";
import { actCommands } from "./machine-act.ts";
import { copy } from "./machine-copy.ts";
import { execCommands } from "./machine-exec.ts";
import { fork } from "./machine-fork.ts";

const create = command({
  name: "create",
  summary: "Make a sandbox from a template, and wait until it runs",
  description:
    "A sandbox is a machine that ends by itself when its time is over: it is destroyed, or with --on-timeout pause suspended and kept. `sandbox template` makes the template.",
  options: [
    { flags: "-t, --template <name>", description: "the template to make it from (default: base)" },
    { flags: "-n, --name <name>", description: "name of the machine, unique within the app" },
    {
      ...timeOption("--timeout <time>", "how long it lives from now", `${DEFAULT_SANDBOX_TIMEOUT_S}`),
      ...SANDBOX_TIMEOUT_S,
    },
    { flags: "--on-timeout <what>", description: "what happens then (default: kill)", choices: ["kill", "pause"] },
    { flags: "--auto-resume", description: "with --on-timeout pause: requests to its ports wake it" },
    { flags: "-l, --label <name=value>", description: "a label for programs; may repeat", repeats: true },
    { flags: "-e, --env <NAME=value>", description: "for programs that start later; may repeat", repeats: true },
    {
      flags: "-v, --volume <name:path>",
      description:
        "volume by name or id, and where to mount it; may repeat. It starts without the template's memory then",
      repeats: true,
    },
    ...WAITING,
  ],
  ofApp: true,
  examples: [
    "hibernaut sandbox create --app agents",
    "hibernaut sandbox create --template python --timeout 1h --on-timeout pause --label task=17",
    "hibernaut sandbox create --volume notes:/mnt/notes",
  ],
  async run(
    context,
    _args,
    { template = "base", name, timeout, onTimeout, autoResume, label, env, volume, ...waiting },
  ) {
    const client = await context.client();
    const sandbox = {
      ...given({ timeout_s: timeout, on_timeout: onTimeout, auto_resume: autoResume }),
      ...(label !== undefined && { metadata: pairs("--label", label) }),
      ...(volume !== undefined && { mounts: volume.map(mountOf) }),
    };
    const work = async () => {
      const environment = env !== undefined && { env: pairs("--env", env) };
      const made = await client.createMachine(context.app, { template, sandbox, ...given({ name }), ...environment });
      const [born = made] = await started(context, [made], waiting);
      return born;
    };
    const born = await context.progress(`Making a sandbox from template ${template}`, work());
    const end = born.sandbox === null ? "" : ` It is ${sandboxEnd(born.sandbox)}.`;
    return { document: born, text: `${bornText([born])}${end}` };
  },
});

const list = listCommand({
  summary: "List the sandboxes of an app",
  ofApp: true,
  examples: ["hibernaut sandbox list --app agents", "hibernaut sandbox ls -q --app agents"],
  async fetch(client, { app }) {
    return (await client.listMachines(app)).filter(({ sandbox }) => sandbox !== null);
  },
  show: ({ app }) => ({
    head: ["ID", "NAME", "STATE", "TEMPLATE", "END", "LABELS", "CREATED"],
    row: (machine: Machine) => [
      machine.id,
      machine.name,
      stateCell(machine),
      machine.sandbox?.template ?? "",
      machine.sandbox === null ? "" : sandboxEnd(machine.sandbox),
      Object.entries(machine.sandbox?.metadata ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(" "),
      ago(machine.created_at),
    ],
    spare: ["CREATED", "LABELS"],
    id: ({ id }: Machine) => id,
    empty: `App ${app} has no sandboxes.`,
  }),
});

const kill = command({
  name: "kill",
  summary: "Destroy sandboxes, whatever they do",
  description: "With all that is in them. This cannot be undone.",
  arguments: [NAMED_MACHINES],
  options: WAITING,
  ofApp: true,
  examples: ["hibernaut sandbox kill 3f9c01ab22de41 --app agents"],
  async run(context, words, options) {
    const client = await context.client();
    const work = forEachMachine(context, words, async (id) => {
      await client.destroyMachine(context.app, id, { force: true });
      if (options.wait !== false) await waitFor(context, id, ["destroyed"], options);
      return { text: options.wait === false ? `Destroying sandbox ${id}.` : `Destroyed sandbox ${id}.` };
    });
    return context.progress(`Destroying ${words.join(", ")}`, work);
  },
});

/** The same command about a sandbox: a sandbox is a machine. */
function asSandbox(name: string, original: Command | undefined, summary: string): Command {
  if (original === undefined) throw new Error(`there is no command for machines that could be \`sandbox ${name}\``);
  const examples = original.examples.map((line) =>
    line
      .replace(`hibernaut machine ${original.name}`, `hibernaut sandbox ${name}`)
      .replace("--app shop", "--app agents"),
  );
  return { ...original, name, summary, examples };
}

const named = (commands: readonly Command[], name: string) => commands.find((one) => one.name === name);

/** In the order in which help shows them. */
export const lifeCommands: readonly Command[] = [
  create,
  list,
  asSandbox("exec", named(execCommands, "exec"), "Run a command in a sandbox"),
  asSandbox("cp", copy, "Copy files between this computer and a sandbox"),
  asSandbox("pause", named(actCommands, "suspend"), "Suspend sandboxes, and keep them"),
  asSandbox("fork", fork, "Make sandboxes that continue from where one is"),
  kill,
];
