/** Makes a copy of a machine. */
import type { Machine } from "@hibernaut/client";
import type { Context } from "./context.ts";
import { toFailure } from "./failure.ts";
import { given } from "./option-values.ts";
import { settle } from "./waiting.ts";

/** A machine that was made as a copy, and what to say about it. */
interface Copy {
  machine: Machine;
  /** Its volumes that are new and empty. */
  newVolumes: string[];
  text: string;
}

/**
 * Creates a machine with the configuration of another and starts it. The copy gets volumes of the same names: those that
 * no machine is using, with their data, or new ones. With a `template` of that configuration, it begins where that stopped.
 */
export async function copyMachine(
  context: Context,
  model: Machine,
  { name, waitTimeout, template }: { name?: string | undefined; waitTimeout: number; template?: string | undefined },
): Promise<Copy> {
  const client = await context.client();
  const { asWanted } = await import("./deploy/plan.ts");
  const known = new Set((await client.listVolumes(context.app)).map((volume) => volume.id));
  const ordinary = () => client.createMachine(context.app, { config: asWanted(model.config), ...given({ name }) });
  const born = (id: string) => client.createMachine(context.app, { template: id, ...given({ name }) });
  const { isUnusable } = await import("./deploy/release-templates.ts");
  const made = await (template === undefined ? ordinary() : born(template)).catch((error: unknown) => {
    if (template === undefined || !isUnusable(error)) throw error;
    context.say(`The template cannot be used: ${toFailure(error).message}`);
    return ordinary();
  });
  const machine = await context.progress(
    `Starting machine ${made.id}`,
    settle(context, made.id, "running", { waitTimeout }),
  );
  const mounts = made.config.mounts ?? [];
  const lines = mounts.map(({ volume = "", name: label = "" }) =>
    known.has(volume)
      ? `It has volume ${volume} (${label}), which no machine was using, with its data.`
      : `Its volume ${volume} (${label}) is new and empty: machines do not share volumes.`,
  );
  return {
    machine,
    newVolumes: mounts.filter(({ volume = "" }) => !known.has(volume)).map(({ volume = "" }) => volume),
    text: [`Created machine ${made.id}.`, ...lines].join("\n"),
  };
}
