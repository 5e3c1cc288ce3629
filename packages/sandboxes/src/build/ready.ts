/** The end of a build: its start command runs, and is ready to be born with every sandbox. */
import { setTimeout as delay } from "node:timers/promises";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import { within } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { Refusal } from "../failure.ts";
import type { Process } from "../inside/process.ts";
import type { Processes } from "../inside/processes.ts";
import { READY_LOOK_MS, READY_TIMEOUT_MS, UNTOLD_READY_MS } from "./limits.ts";
import type { BuildLog } from "./log.ts";
import { type BuildMachine, failed } from "./machine.ts";

/** What makes a template ready. Without both, it is at once. */
export interface Readiness {
  /** Runs on in all that is born from the template. */
  startCmd?: string | undefined;
  /** Runs again and again until it exits with 0. */
  readyCmd?: string | undefined;
}

/** The tag by which clients find the start command among the programs of a sandbox. */
const START_TAG = "start";
export const FINALIZE = "finalize";

interface SettleContext {
  defaults: ProgramDefaults;
  processes: Processes;
  log: BuildLog;
  signal: AbortSignal;
}

/** Rejects with a {@link Refusal} when the start command fails, or is not ready in time. */
export async function settle(
  machine: BuildMachine,
  { startCmd, readyCmd }: Readiness,
  { defaults, processes, log, signal }: SettleContext,
): Promise<void> {
  const over = new AbortController();
  const limit = within(AbortSignal.any([signal, over.signal]), READY_TIMEOUT_MS, "getting ready");
  let ended: string | undefined;
  if (startCmd !== undefined) {
    log.say(FINALIZE, "info", `Start command: ${startCmd}`);
    const started = await begin(machine, startCmd, defaults, processes);
    const follow = async () => {
      ended = await followed(started, log, over.signal);
      if (ended !== undefined) over.abort(new Refusal(400, `The start command failed: ${ended}.`));
    };
    // It is followed until the machine is destroyed: it runs on in the template.
    background(follow(), "the start command of a build");
  }
  try {
    if (readyCmd !== undefined) await untilReady(machine, readyCmd, { defaults, log, signal: limit });
    else if (startCmd !== undefined) await delay(UNTOLD_READY_MS, undefined, { signal: limit });
  } catch (error) {
    signal.throwIfAborted();
    if (over.signal.aborted) throw over.signal.reason;
    if (limit.aborted) throw new Refusal(504, `The template was not ready after ${READY_TIMEOUT_MS / 60_000} minutes.`);
    throw error;
  }
  if (over.signal.aborted) throw over.signal.reason;
}

async function begin(machine: BuildMachine, command: string, defaults: ProgramDefaults, processes: Processes) {
  const { user, workdir, env } = await machine.as(defaults);
  return processes.start(machine.id, machine.guest, {
    ...{ cmd: "/bin/bash", args: ["-l", "-c", command], envs: {}, tag: START_TAG, terminal: false, stdin: false },
    ...{ user, env, timeoutMs: 0, ...(workdir !== undefined && { cwd: workdir }) },
  });
}

/** Takes what it prints into the log. Resolves with how it failed, if it did. */
async function followed(program: Process, log: BuildLog, signal: AbortSignal): Promise<string | undefined> {
  const out = { stdout: log.lines(FINALIZE, "info"), stderr: log.lines(FINALIZE, "warn") };
  try {
    for await (const message of program.follow(signal)) {
      if (message.kind === "stdout" || message.kind === "stderr") out[message.kind].write(message.bytes);
      // The machine is gone.
      if (message.kind === "end") return "lost" in message.exit ? undefined : failed(message.exit);
    }
    return undefined;
  } finally {
    out.stdout.end();
    out.stderr.end();
  }
}

async function untilReady(
  machine: BuildMachine,
  command: string,
  { defaults, log, signal }: Omit<SettleContext, "processes">,
): Promise<void> {
  log.say(FINALIZE, "info", `Ready command: ${command}`);
  for (;;) {
    const exit = await machine.run(command, { ...defaults, step: FINALIZE, log, signal });
    if (failed(exit) === undefined) return;
    await delay(READY_LOOK_MS, undefined, { signal });
  }
}
