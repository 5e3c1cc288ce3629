/** Whether a command can be run in a machine, or why that is not possible. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { type CommandSpec, encodeCommand, SANDBOX_PROTOCOL, TASKS_PROTOCOL } from "@hibernaut/guest";
import { capital } from "@hibernaut/lib/text";
import type { LiveGuest } from "./guest.ts";

/** A machine as a command finds it. */
export interface CommandedMachine {
  record: Pick<MachineRecord, "id" | "state">;
  live: LiveGuest | undefined;
  /** What the machine's agent speaks. */
  protocol: number;
}

/** Whether a command asks for what agents learned with {@link SANDBOX_PROTOCOL}. */
function isForSandboxes({ task, login, label }: CommandSpec): boolean {
  return task?.startsWith("fs-") === true || login === true || label !== undefined;
}

/**
 * Throws `failed_precondition` unless the machine runs, with a guest bundle that supports what the command asks for, and
 * `invalid_argument` when the command is too long. Returns the guest, in which nothing has happened yet.
 */
export function requireCommand(
  { record: { id, state }, live, protocol }: CommandedMachine,
  spec: CommandSpec,
): LiveGuest {
  if (state !== "running" || live === undefined)
    throw new HibernautError(
      "failed_precondition",
      state === "starting" || state === "restarting" || state === "updating"
        ? `Machine ${id} is ${state}. Wait until it runs (\`hibernaut machine wait ${id}\`), then run the command.`
        : `Machine ${id} is ${state}. Start it, then run the command.`,
      { machine_id: id, state },
    );
  if (!live.agent.hasStreams)
    throw new HibernautError(
      "failed_precondition",
      `Machine ${id} runs an older guest bundle that cannot run commands. Run \`hibernaut machine update ${id} --yes\`.`,
    );
  if (spec.task !== undefined && protocol < TASKS_PROTOCOL)
    throw new HibernautError(
      "failed_precondition",
      `Machine ${id} runs an older guest bundle that cannot copy files, forward ports, send signals or list processes. Run \`hibernaut machine update ${id} --yes\`, which cold starts it with an empty writable layer.`,
      { machine_id: id, agent_protocol: protocol },
    );
  if (isForSandboxes(spec) && protocol < SANDBOX_PROTOCOL)
    throw new HibernautError(
      "failed_precondition",
      `Machine ${id} runs an older guest bundle that cannot serve as a sandbox. Run \`hibernaut machine update ${id} --yes\`, which cold starts it with an empty writable layer.`,
      { machine_id: id, agent_protocol: protocol },
    );
  try {
    encodeCommand(spec);
  } catch (error) {
    if (error instanceof RangeError) throw new HibernautError("invalid_argument", `${capital(error.message)}.`);
    throw error;
  }
  return live;
}
