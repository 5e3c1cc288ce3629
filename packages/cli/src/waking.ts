/** Wakes a sleeping machine for a command that needs it running. */
import type { Machine, MachineState } from "@hibernaut/client";
import type { Option, OptionValues } from "./command.ts";
import type { Context } from "./context.ts";
import { settle } from "./waiting.ts";

/** The option of commands that wake a machine. */
export const NO_WAKE = {
  flags: "--no-wake",
  description: "fail if the machine sleeps, instead of waking it",
} as const satisfies Option;

const ASLEEP: ReadonlySet<MachineState> = new Set(["suspended", "suspending", "stopped", "created"]);
/** States that lead to `running` by themselves. */
const COMING: ReadonlySet<MachineState> = new Set(["starting", "restarting", "updating"]);

/**
 * Resolves once the machine runs; at once if it does, or if it neither sleeps nor starts: the platform then says what is
 * wrong. `reason` is for the machine's history.
 */
export async function awake(
  context: Context,
  { id, state }: Pick<Machine, "id" | "state">,
  reason: string,
  { wake = true }: OptionValues<readonly [typeof NO_WAKE]>,
): Promise<void> {
  if (!wake || !(ASLEEP.has(state) || COMING.has(state))) return;
  const client = await context.client();
  if (ASLEEP.has(state)) await client.startMachine(context.app, id, { reason });
  await context.progress(`Waking machine ${id}`, settle(context, id, "running", {}));
}
