/** Which machines a command means. What a word means the platform decides; we only know what no word means. */
import type { Machine } from "@hibernaut/client";
import type { Argument, Result } from "./command.ts";
import type { Context } from "./context.ts";
import { CliError, UsageError } from "./failure.ts";
import { table } from "./terminal.ts";
import { forEach, type Outcome } from "./waiting.ts";

const FORMS = "id, name, or the beginning of the id";

/** Of commands for one machine. */
export const MACHINE: Argument = {
  usage: "[id]",
  description: `the machine: ${FORMS}; not needed where the app has one machine`,
};
/** Of commands for several. */
export const MACHINES: Argument = {
  usage: "[id...]",
  description: `the machines: ${FORMS}; not needed where the app has one machine`,
};
/** Of commands that nobody should run on a machine that was not named. */
export const NAMED_MACHINES: Argument = { usage: "<id...>", description: `the machines: ${FORMS}` };

/** The machine that a word means; without a word, the only one of the app. */
export async function machineOf(context: Context, word: string | undefined): Promise<Machine> {
  const client = await context.client();
  if (word !== undefined) return client.getMachine(context.app, word);
  const machines = await client.listMachines(context.app);
  const [only, ...others] = machines;
  if (only === undefined)
    throw new CliError(
      "failed_precondition",
      `App ${context.app} has no machines. Make one: hibernaut machine run <image> --app ${context.app}`,
    );
  if (others.length === 0) return only;
  const rows = machines.map(({ id, name, state }) => [`  ${id}`, name, state]);
  throw new UsageError(
    `App ${context.app} has ${machines.length} machines:\n${table(rows)}\nSay which one, by its id, its name, or the beginning of its id.`,
  );
}

/** Does the same to every machine that is meant; without words, to the only one of the app. */
export async function forEachMachine(
  context: Context,
  words: readonly string[],
  act: (id: string) => Promise<Outcome>,
): Promise<Result> {
  const named = words.length > 0 ? words : [(await machineOf(context, undefined)).id];
  return forEach(named, async (word) => {
    const { id } = await machineOf(context, word);
    const { text, data } = await act(id);
    return { text, data: { machine_id: id, ...data } };
  });
}
