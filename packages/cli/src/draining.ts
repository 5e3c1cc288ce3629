/** Follows a drain to its end, and shows the progress. */
import { setTimeout as delay } from "node:timers/promises";
import type { Drain, DrainedMachine } from "@hibernaut/client";
import type { Context } from "./context.ts";
import { type Display, oneLine } from "./display.ts";
import { CliError } from "./failure.ts";

/** How often the platform is asked, in milliseconds: a suspend takes a tenth of a second. */
const POLL_MS = 200;

/**
 * Waits until the drain is complete. Shows a line that counts on a terminal, a line per machine elsewhere, and with
 * `--json` every change as a line of JSON. All of it goes to standard error, because standard output is for the result.
 */
export async function followDrain(
  context: Context,
  begun: Drain,
  stream: NodeJS.WriteStream = process.stderr,
): Promise<Drain> {
  const client = await context.client();
  const display = context.json ? jsonLines(stream) : stream.isTTY ? oneLine(countText, stream) : plainLines(stream);
  try {
    for (let drain = begun; ; drain = await client.getDrain()) {
      display.show(drain);
      if (drain.state === "drained") return drain;
      if (drain.state === "none")
        throw new CliError("aborted", "Another client ended the drain. Run the command again to begin a new one.");
      await delay(POLL_MS);
    }
  } finally {
    display.end();
  }
}

/** Calls `say` for each machine that is new or has changed since the last call. */
function onChange(say: (machine: DrainedMachine) => void): Display<Drain> {
  const said = new Map<string, string>();
  return {
    show({ machines }) {
      for (const machine of machines) {
        if (said.get(machine.machine_id) === machine.result) continue;
        said.set(machine.machine_id, machine.result);
        say(machine);
      }
    },
    end: () => {},
  };
}

function jsonLines(stream: NodeJS.WriteStream): Display<Drain> {
  return onChange((machine) => void stream.write(`${JSON.stringify(machine)}\n`));
}

function plainLines(stream: NodeJS.WriteStream): Display<Drain> {
  return onChange(({ app_name: app, name, machine_id: id, result, reason }) => {
    if (result !== "waiting")
      stream.write(`${app}/${name} (${id}): ${result}${reason === null ? "" : `: ${reason}`}\n`);
  });
}

function countText({ machines, deadline }: Drain): string {
  const done = machines.filter(({ result }) => result === "suspended" || result === "left").length;
  const now = machines.filter(({ result }) => result === "suspending");
  const doing = now.map(({ app_name, name }) => `${app_name}/${name}`).join(", ");
  const leftS = deadline === null ? 0 : Math.max(0, Math.round((Date.parse(deadline) - Date.now()) / 1000));
  return `Suspending machines, ${done} of ${machines.length} done, ${leftS} s left${doing && `: ${doing}`}`;
}
