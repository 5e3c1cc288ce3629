/** Machines that are made from the memory of another one: what the commands for that have in common. */
import type { Machine } from "@hibernaut/client";
import type { Context } from "./context.ts";
import { type WaitingOptions, waitFor } from "./waiting.ts";

/** Waits until each machine has started, or has shown that it will not. Returns them as they are then. */
export async function started(
  context: Context,
  machines: readonly Machine[],
  options: WaitingOptions,
): Promise<Machine[]> {
  if (options.wait === false) return [...machines];
  const client = await context.client();
  return Promise.all(
    machines.map(async ({ id }) => {
      await waitFor(context, id, ["settled"], options);
      return client.getMachine(context.app, id);
    }),
  );
}

/** A line for each machine. */
export function bornText(machines: readonly Machine[]): string {
  return machines.map(({ id, name, state }) => `Machine ${id} (${name}) is ${state}.`).join("\n");
}
