/** A machine that is made for a template only: started, prepared, looked at, and destroyed once its state is kept. */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { CommandExit } from "@hibernaut/guest";
import { abortable } from "@hibernaut/lib/async";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import { requireCommand } from "../run-command.ts";

/** Between two looks whether the machine is ready. */
const LOOK_MS = 250;
/** How much of what a command prints is told when it fails, in characters. */
const LONGEST_TOLD = 2000;

/** How a machine gets ready to be a template. */
export interface Preparation {
  config: MachineConfig;
  /** Runs once the machine is healthy, or runs if nothing says that it is. Without it, nothing does. */
  prepare?: readonly string[];
  /** Runs again and again until it exits with 0. Without it, the machine is ready at once. */
  ready?: readonly string[];
  /** For all of it, from the start of the machine on. */
  timeoutMs: number;
}

/**
 * Waits for the machine, and prepares it. Rejects with `failed_precondition` when it fails, and with `deadline_exceeded` when
 * it takes too long.
 */
export async function prepareMachine(
  controller: MachineController,
  { config, prepare, ready, timeoutMs }: Preparation,
  controllers: Pick<ControllerSet, "wait">,
  signal: AbortSignal,
): Promise<void> {
  const { id } = controller.record;
  const began = Date.now();
  const judged = (config.services ?? []).length > 0 || Object.keys(config.checks ?? {}).length > 0;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const wanted = judged ? (["healthy", "stopped", "failed"] as const) : (["running", "stopped", "failed"] as const);
  const { state } = await controllers.wait(controller, [...wanted], { timeoutMs, signal });
  if (state !== "running")
    throw refused(`it is ${state} (${controller.record.stateReason ?? "no reason is known"}). See \`hibernaut logs\``);
  if (prepare !== undefined) {
    const { exit, output } = await run(controller, prepare, limit).catch(late);
    if (exit.code !== 0 || exit.failure !== undefined)
      throw refused(`\`${prepare.join(" ")}\` failed: ${told(exit, output)}`);
  }
  for (;;) {
    if (ready === undefined) return;
    const { exit, output } = await run(controller, ready, limit).catch(late);
    if (exit.code === 0 && exit.failure === undefined) return;
    if (Date.now() - began > timeoutMs) throw refused(`\`${ready.join(" ")}\` does not succeed: ${told(exit, output)}`);
    await delay(LOOK_MS, undefined, { signal: limit }).catch(late);
  }

  function late(error: unknown): never {
    signal.throwIfAborted();
    if (!limit.aborted) throw error;
    throw new HibernautError(
      "deadline_exceeded",
      `The machine of the template was not ready after ${Math.round(timeoutMs / 1000)} s. Allow more with \`timeout\`.`,
      { machine_id: id },
    );
  }
}

async function run(
  controller: MachineController,
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ exit: CommandExit; output: string }> {
  const spec = { args: [...args] };
  const command = requireCommand(controller.commanded, spec).agent.streams.run(spec);
  let output = "";
  for (const stream of [command.stdout, command.stderr])
    stream.on("data", (data: Buffer) => (output = (output + data.toString()).slice(-LONGEST_TOLD)));
  try {
    return { exit: await abortable(command.exit, signal), output };
  } catch (error) {
    command.kill();
    throw error;
  }
}

function told({ code, failure }: CommandExit, output: string): string {
  return failure ?? `exit code ${code}${output.trim() === "" ? "" : `: ${output.trim()}`}`;
}

function refused(why: string): HibernautError {
  return new HibernautError("failed_precondition", `No template was made: the machine did not get ready: ${why}.`);
}
