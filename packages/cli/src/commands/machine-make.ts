/** `hibernaut machine create`, `run` and `update`: commands that set a configuration. */
import type { CreateMachineRequest, Machine, MachineConfig } from "@hibernaut/client";
import { answersAt } from "../answering.ts";
import { bornText, started } from "../births.ts";
import { type Argument, type Command, command, type Option, type OptionValues, type Result } from "../command.ts";
import { confirm, YES } from "../confirming.ts";
import type { Context } from "../context.ts";
import { isUp } from "../deploy/plan.ts";
import { CliError, UsageError } from "../failure.ts";
import { CONFIG_OPTIONS, type ConfigOptions, changesConfig, pairs, withOptions } from "../machine-config.ts";
import { given } from "../option-values.ts";
import { lines } from "../terminal.ts";
import { provide, UPLOAD } from "../upload/provide.ts";
import { settle, WAITING, type WaitingOptions, waitFor } from "../waiting.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const IMAGE: readonly Argument[] = [
  { usage: "[image]", description: "image to run, such as oci:/srv/app:latest" },
  { usage: "[command...]", description: "run this instead of the image's command; put it after --" },
];
const NAME = [
  { flags: "-n, --name <name>", description: "name of the machine, unique within the app" },
  { flags: "--region <region>", description: "region to run the machine in" },
  {
    flags: "--host <host>",
    description:
      "in a cluster, the host to run the machine on (default: one with room and few machines of the app; with --template, rather one that has the template)",
  },
] as const satisfies readonly Option[];

type MakeOptions = OptionValues<typeof NAME> & ConfigOptions & OptionValues<typeof UPLOAD>;

const create = command({
  name: "create",
  summary: "Create a machine without starting it",
  arguments: IMAGE,
  options: [...NAME, ...CONFIG_OPTIONS, ...UPLOAD],
  ofApp: true,
  examples: [
    "hibernaut machine create oci:/srv/shop:latest --app shop --port 8080",
    "hibernaut machine create --app shop --image oci:/srv/shop --name web-1",
  ],
  async run(context, args, options) {
    const machine = await make(context, { ...request(args, options), skip_launch: true }, options);
    return {
      document: machine,
      text: `Created machine ${machine.id}. Start it: hibernaut machine start ${machine.id}`,
    };
  },
});

const TEMPLATE = {
  flags: "--template <id>",
  description: "begin where this template stopped, in place of an image",
} as const satisfies Option;

const RM = {
  flags: "--rm",
  description:
    "destroy the machine once its app ends: --auto-destroy on, with --restart never unless you choose another",
} as const satisfies Option;

const run = command({
  name: "run",
  summary: "Create a machine and wait until it is running",
  arguments: IMAGE,
  options: [...NAME, TEMPLATE, RM, ...CONFIG_OPTIONS, ...UPLOAD, ...WAITING],
  ofApp: true,
  examples: [
    "hibernaut machine run oci:/srv/shop:latest --app shop --port 8080 --autostop suspend",
    "hibernaut machine run oci:/srv/tools --app jobs --restart never --memory 512mb -- node report.js",
    "hibernaut machine run --rm oci:/srv/tools --app jobs -- node report.js",
    "hibernaut machine run --template ready --app shop",
  ],
  async run(context, args, { rm = false, ...others }) {
    const wanted: typeof others & ConfigOptions = others;
    if (rm && (wanted.template !== undefined || wanted.autoDestroy === "off"))
      throw new UsageError(
        "--rm sets --auto-destroy on. Leave it out with --template, which has a configuration of its own.",
      );
    const options = rm ? { ...wanted, autoDestroy: "on" as const, restart: wanted.restart ?? "never" } : wanted;
    if (options.template !== undefined) return runTemplate(context, options.template, args, options);
    const made = await make(context, request(args, options), options);
    const machine = await context.progress(`Starting machine ${made.id}`, settle(context, made.id, "running", options));
    const serves = machine.state === "running" && machine.unreachable === null;
    const reached = serves && (machine.config.services ?? []).length > 0;
    const where = reached ? await answersAt(context) : undefined;
    return { document: machine, text: lines(`Machine ${machine.id} is ${machine.state}.`, where) };
  },
});

/** A machine from a template has its image and configuration. */
async function runTemplate(
  context: Context,
  template: string,
  args: readonly string[],
  {
    name,
    host,
    env,
    template: _,
    wait,
    waitTimeout,
    ...others
  }: MakeOptions & OptionValues<[typeof TEMPLATE]> & WaitingOptions,
): Promise<Result> {
  if (args.length > 0 || Object.keys(given(others)).length > 0)
    throw new UsageError(
      "A machine from a template has the template's image and configuration. With --template, use only --name, --host, --env and the options for waiting.",
    );
  const client = await context.client();
  const work = async () => {
    const made = await client.createMachine(context.app, {
      template,
      ...given({ name, host }),
      ...(env !== undefined && { env: pairs("--env", env) }),
    });
    const [born = made] = await started(context, [made], given({ wait, waitTimeout }));
    return born;
  };
  const born = await context.progress(`Making a machine from template ${template}`, work());
  return { document: born, text: bornText([born]) };
}

const update = command({
  name: "update",
  summary: "Change a machine, or move it to the current guest bundle",
  description:
    "A running machine is replaced by a cold start; a suspended machine loses its snapshot and stays asleep. Options change only what they name. Without options, the machine moves to the current guest bundle and keeps its image and configuration; a suspended machine keeps its snapshot, too, and moves at its next cold start.",
  arguments: [MACHINE],
  options: [
    ...CONFIG_OPTIONS,
    {
      flags: "--prewarm",
      description: "start a sleeping machine with the change, check it, and let it sleep again with a snapshot",
    },
    ...UPLOAD,
    ...WAITING,
    YES,
  ],
  ofApp: true,
  examples: [
    "hibernaut machine update 3f9c01ab22de41 --memory 512mb --env LOG=debug",
    "hibernaut machine update 3f9c01ab22de41 --yes",
  ],
  async run(context, [word], options) {
    const client = await context.client();
    const changes = changesConfig(options);
    if (!changes && options.prewarm)
      throw new UsageError("--prewarm starts a machine with a change. Add an option that changes it.");
    const move = !changes && !options.yes;
    if (move && !process.stdin.isTTY)
      throw new UsageError("Nothing to change. Add an option, or --yes to move to the current guest bundle.");
    const before = await machineOf(context, word);
    const { id } = before;
    if (!changes) return moveBundle(context, before, options);
    const changed = withOptions(before.config, options);
    // The image of the machine is where the platform found it, which may not be this machine.
    const upload = options.image === undefined ? { upload: false } : options;
    const config = { ...changed, image: (await provide(context, changed.image, upload)).ref };
    const updated = await client.updateMachine(context.app, id, config, { prewarm: options.prewarm ?? false });
    const machine =
      updated.prewarm?.status === "pending" && options.wait !== false
        ? await prewarmed(context, id, options)
        : await context.progress(
            `Updating machine ${id}`,
            settle(context, id, isUp(before) ? "running" : "settled", options),
          );
    const text = `Machine ${id} is ${machine.state}, version ${machine.version}.${lossText(before, machine)}`;
    return { document: machine, text };
  },
});

/** What the update cost a machine that sleeps on. */
function lossText(before: Machine, { state, snapshot }: Machine): string {
  if (before.snapshot === null || snapshot !== null || state !== "suspended") return "";
  return " Its snapshot was of the version before and is discarded: the next start is a cold start.";
}

/** Waits until a sleeping machine has run with its change. Fails if it did not work. */
async function prewarmed(context: Context, id: string, options: OptionValues<typeof WAITING>): Promise<Machine> {
  const client = await context.client();
  await context.progress(`Starting machine ${id} with the change`, waitFor(context, id, ["prewarmed"], options));
  await waitFor(context, id, ["settled"], options);
  const machine = await client.getMachine(context.app, id);
  if (machine.prewarm?.status !== "failed") return machine;
  throw new CliError(
    "failed_precondition",
    `Machine ${id} does not work with the change: ${machine.prewarm.reason?.replace(/\.$/, "")}. It is ${machine.state}, and starts with the next request. See \`hibernaut logs -m ${id} --app ${context.app}\`.`,
  );
}

/** Moves a machine to the current guest bundle, and says what became of that. */
async function moveBundle(
  context: Context,
  before: Machine,
  options: OptionValues<typeof WAITING> & OptionValues<readonly [typeof YES]>,
): Promise<Result> {
  const { id } = before;
  if (before.guest_bundle.current)
    return { document: before, text: `Machine ${id} is already current: it has the newest guest bundle.` };
  const cost = before.snapshot === null ? "Its memory and files will be lost." : "It keeps its snapshot until then.";
  const when = before.snapshot === null ? "now" : "at its next cold start";
  if (!options.yes && !(await confirm(`Move machine ${id} to the newest guest bundle ${when}? ${cost}`)))
    throw new UsageError("Nothing was changed.");
  const moved = await (await context.client()).updateMachine(context.app, id);
  if (moved.guest_bundle.update_pending)
    return {
      document: moved,
      text: `Machine ${id} keeps its snapshot, and moves to the newest guest bundle at its next cold start.`,
    };
  const wanted = isUp(before) ? "running" : "settled";
  const machine = await context.progress(`Updating machine ${id}`, settle(context, id, wanted, options));
  return { document: machine, text: `Machine ${id} is ${machine.state}, version ${machine.version}.` };
}

type WithConfig = CreateMachineRequest & { config: MachineConfig };

/** The request that the options and arguments of `create` and `run` describe. */
function request(args: readonly string[], options: MakeOptions): WithConfig {
  // With --image every argument belongs to the command.
  const [image, ...words] = options.image === undefined ? args : [options.image, ...args];
  if (image === undefined)
    throw new UsageError("No image. Name one, as in `hibernaut machine run oci:/srv/app:latest`.");
  const config = withOptions({ image }, options);
  return {
    ...(options.name !== undefined && { name: options.name }),
    ...(options.region !== undefined && { region: options.region }),
    ...(options.host !== undefined && { host: options.host }),
    config: words.length === 0 ? config : { ...config, init: { ...config.init, cmd: words } },
  };
}

async function make(context: Context, body: WithConfig, upload: OptionValues<typeof UPLOAD>): Promise<Machine> {
  const client = await context.client();
  const { ref: image } = await provide(context, body.config.image, upload);
  return client.createMachine(context.app, { ...body, config: { ...body.config, image } });
}

/** The commands that set a configuration. */
export const makeCommands: readonly Command[] = [create, run, update];
