/** `hibernaut machine start`, `stop`, `suspend`, `restart`, `destroy` and `wait`, `cordon` and `uncordon`. */
import type { HibernautClient, Machine, StopOptions, WaitState } from "@hibernaut/client";
import { STOP_TIMEOUT_S } from "@hibernaut/domain/limits";
import { type Command, command, type Option, type OptionValues, timeOption } from "../command.ts";
import { YES } from "../confirming.ts";
import { UsageError } from "../failure.ts";
import { bootText } from "../machine-columns.ts";
import { given } from "../option-values.ts";
import { settle, WAIT_TIMEOUT, WAITING, type WaitingOptions, waitFor } from "../waiting.ts";
import { forEachMachine, MACHINES, NAMED_MACHINES } from "../which-machine.ts";
import { fullName } from "./machine-signal.ts";

const STATES = [
  "running",
  "stopped",
  "suspended",
  "destroyed",
  "failed",
  "created",
  "restarting",
  "settled",
  "healthy",
  "unhealthy",
] as const;

interface Verb {
  name: string;
  summary: string;
  description: string;
  doing: string;
  wanted: WaitState;
  act(client: HibernautClient, app: string, id: string, stop: StopOptions): Promise<unknown>;
  /** Whether it stops the machine, which can be said how. */
  stops?: true;
}

/** How this stop is, in place of the machine's `--stop-signal` and `--stop-timeout`. */
const STOPPING = [
  { flags: "--signal <signal>", description: "ask the app to exit with this signal (default: the machine's)" },
  {
    ...timeOption("--timeout <time>", "kill the app after this time", "the machine's", "30s"),
    ...STOP_TIMEOUT_S,
  },
] as const satisfies readonly Option[];

const VERBS: readonly Verb[] = [
  {
    name: "start",
    summary: "Start machines",
    description: "A suspended machine resumes exactly where it left off; any other machine starts from scratch.",
    doing: "Starting",
    wanted: "running",
    act: (client, app, id) => client.startMachine(app, id),
  },
  {
    name: "suspend",
    summary: "Suspend machines to snapshots",
    description:
      "The complete state is written to disk, and the machine then costs storage only. `machine status` shows whether a machine can be suspended.",
    doing: "Suspending",
    wanted: "suspended",
    act: (client, app, id) => client.suspendMachine(app, id),
  },
  {
    name: "stop",
    summary: "Stop machines",
    description:
      "Asks the app to exit, then shuts the machine down. A snapshot is discarded. With --signal or --timeout, a stop that is under way already continues like this.",
    doing: "Stopping",
    wanted: "stopped",
    act: (client, app, id, stop) => client.stopMachine(app, id, stop),
    stops: true,
  },
  {
    name: "restart",
    summary: "Stop machines and start them from scratch",
    description: "A snapshot is discarded.",
    doing: "Restarting",
    wanted: "running",
    act: (client, app, id, stop) => client.restartMachine(app, id, stop),
    stops: true,
  },
];

function verbCommand({ name, summary, description, doing, wanted, act, stops }: Verb): Command {
  return command({
    name,
    summary,
    description,
    arguments: [MACHINES],
    options: stops ? [...STOPPING, ...WAITING] : WAITING,
    ofApp: true,
    examples: [
      `hibernaut machine ${name} 3f9c01ab22de41 --app shop`,
      `hibernaut machine ${name} 3f9c01 web-2 --wait-timeout 30s`,
      ...(stops ? [`hibernaut machine ${name} 3f9c01 --signal SIGINT --timeout 2m --wait-timeout 3m`] : []),
    ],
    async run(context, words, { signal, timeout, ...options }: OptionValues<typeof STOPPING> & WaitingOptions) {
      const client = await context.client();
      const stop = given({ stopSignal: signal && fullName(signal), timeout });
      const work = forEachMachine(context, words, async (id) => {
        await act(client, context.app, id, stop);
        const machine = await settle(context, id, wanted, options);
        return { text: stateText(machine), data: { state: machine.state } };
      });
      return context.progress(`${doing} ${namesOf(words)}`, work);
    },
  });
}

const destroy = command({
  name: "destroy",
  aliases: ["rm"],
  summary: "Destroy machines permanently",
  description:
    "Also deletes their snapshots and disks, but not their volumes. A running machine is destroyed only with --force.",
  arguments: [NAMED_MACHINES],
  options: [
    { flags: "-f, --force", description: "even if it is running" },
    { ...YES, description: "accepted as elsewhere; this command does not ask" },
    ...WAITING,
  ],
  ofApp: true,
  examples: ["hibernaut machine destroy 3f9c01ab22de41 --force --app shop"],
  async run(context, words, { force = false, yes: _never, ...options }) {
    const client = await context.client();
    const work = forEachMachine(context, words, async (id) => {
      await client.destroyMachine(context.app, id, { force });
      if (options.wait !== false) await waitFor(context, id, ["destroyed"], options);
      return { text: options.wait === false ? `Destroying machine ${id}.` : `Destroyed machine ${id}.` };
    });
    return context.progress(`Destroying ${namesOf(words)}`, work);
  },
});

function cordonCommand(on: boolean): Command {
  const name = on ? "cordon" : "uncordon";
  return command({
    name,
    summary: on ? "Give machines no more requests" : "Give cordoned machines requests again",
    description: on
      ? "The proxy finishes the open requests of a cordoned machine, gives it no new ones, and neither wakes it nor puts it to sleep. Its state stays."
      : "The proxy also wakes the machine and puts it to sleep again.",
    arguments: [MACHINES],
    ofApp: true,
    examples: [`hibernaut machine ${name} 3f9c01ab22de41 --app shop`],
    async run(context, words) {
      const client = await context.client();
      return forEachMachine(context, words, async (id) => {
        await (on ? client.cordonMachine(context.app, id) : client.uncordonMachine(context.app, id));
        return { text: `Machine ${id} is ${on ? "cordoned" : "no longer cordoned"}.`, data: { cordoned: on } };
      });
    },
  });
}

const wait = command({
  name: "wait",
  summary: "Wait until machines reach a state",
  description: "Exits with code 124 if a machine does not reach it in time.",
  arguments: [MACHINES],
  options: [
    { flags: "--state <state>", description: "the state (default: running); several are separated by commas" },
    WAIT_TIMEOUT,
  ],
  ofApp: true,
  examples: [
    "hibernaut machine wait 3f9c01ab22de41 --state suspended --wait-timeout 60s",
    "hibernaut machine wait 3f9c01ab22de41 --state stopped,failed",
  ],
  async run(context, words, { state = "running", ...options }) {
    const states = state.split(",").map(waitState);
    const work = forEachMachine(context, words, async (id) => {
      const reached = await waitFor(context, id, states, options);
      return { text: `Machine ${id} is ${reached}.`, data: { state: reached } };
    });
    return context.progress(`Waiting for ${namesOf(words)} to be ${states.join(" or ")}`, work);
  },
});

function namesOf(words: readonly string[]): string {
  return words.length === 0 ? "the app's machine" : words.join(", ");
}

function waitState(word: string): WaitState {
  const found = STATES.find((state) => state === (word === "started" ? "running" : word));
  if (found === undefined) throw new UsageError(`\`${word}\` is not a valid --state. Use ${STATES.join(", ")}.`);
  return found;
}

function stateText({ id, state, last_boot }: Machine): string {
  if (state !== "running" || !last_boot) return `Machine ${id} is ${state}.`;
  return `Machine ${id} is running (${bootText(last_boot, last_boot.kind === "cold" ? "cold started" : undefined)}).`;
}

export const actCommands: readonly Command[] = [
  ...VERBS.map(verbCommand),
  wait,
  cordonCommand(true),
  cordonCommand(false),
  destroy,
];
