/** Finds the machines that a command means. The platform resolves words; this file handles their absence. */
import type { Machine } from "@hibernaut/client";
import type { Argument, Result } from "./command.ts";
import { ask } from "./confirming.ts";
import type { Context } from "./context.ts";
import { CliError, UsageError } from "./failure.ts";
import { table } from "./terminal.ts";
import { forEach, type MachineOutcome } from "./waiting.ts";

const FORMS = "id, name, or beginning of the id";

export const MACHINE: Argument = {
  usage: "[id]",
  names: "machine",
  description: `the machine: ${FORMS} (default: the only machine of the app)`,
};
export const MACHINES: Argument = {
  usage: "[id...]",
  names: "machine",
  description: `the machines: ${FORMS} (default: the only machine of the app)`,
};
/** The argument of commands that need their machines named. */
export const NAMED_MACHINES: Argument = { usage: "<id...>", names: "machine", description: `the machines: ${FORMS}` };

/** The machine that a word means; without a word, the only one of the app. */
export async function machineOf(context: Context, word: string | undefined): Promise<Machine> {
  const client = await context.client();
  if (word !== undefined) return client.getMachine(context.app, word);
  const machines = await client.listMachines(context.app);
  const [only, ...others] = machines;
  if (only === undefined)
    throw new CliError(
      "failed_precondition",
      `App ${context.app} has no machines. Create one: hibernaut machine run <image> --app ${context.app}`,
    );
  if (others.length === 0) return only;
  const rows = machines.map(({ id, name, state }) => [`  ${id}`, name, state]);
  throw new UsageError(
    `App ${context.app} has ${machines.length} machines:\n${table(rows)}\nName one by its id, its name, or the beginning of its id.`,
  );
}

/** Like {@link machineOf}, but asks which of several machines is meant. Only for commands that need a terminal anyway. */
export async function chosenMachine(
  context: Context,
  word: string | undefined,
  askUser: (question: string) => Promise<string> = ask,
): Promise<Machine> {
  const machines = word === undefined ? await (await context.client()).listMachines(context.app) : [];
  if (machines.length < 2) return machineOf(context, word);
  const rows = machines.map(({ id, name, state }, index) => [`${index + 1}`, id, name, state]);
  const answer = await askUser(`App ${context.app} has ${machines.length} machines:\n${table(rows)}\nWhich one? `);
  const chosen = machines[Number(answer.trim()) - 1];
  if (chosen !== undefined) return chosen;
  if (answer.trim() === "") throw new UsageError("No machine was chosen.");
  return machineOf(context, answer.trim());
}

/** Does the same to every named machine; without words, to the only machine of the app. */
export async function forEachMachine(
  context: Context,
  words: readonly string[],
  act: (id: string) => Promise<MachineOutcome>,
): Promise<Result> {
  const named = words.length > 0 ? words : [(await machineOf(context, undefined)).id];
  return forEach(named, async (word) => {
    const { id } = await machineOf(context, word);
    const { text, data } = await act(id);
    return { text, data: { machine_id: id, ...data } };
  });
}
