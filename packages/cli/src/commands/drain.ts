/** `hibernaut drain` and `hibernaut undrain`: before and after work on the host. */
import type { Drain } from "@hibernaut/client";
import { type Command, command, type Result, timeOption } from "../command.ts";
import { DRAIN_TIMEOUT_S } from "../defaults.ts";
import { followDrain } from "../draining.ts";
import { CliError, UsageError } from "../failure.ts";
import { given } from "../option-values.ts";
import { count, lines } from "../terminal.ts";

const PLAIN =
  "Draining: the platform neither starts nor creates machines. Running machines keep running. End it with `hibernaut undrain`.";

const drain = command({
  name: "drain",
  summary: "Stop starting machines, and suspend those that run",
  description:
    "For work on the host. Until `hibernaut undrain`, the platform neither starts nor creates machines. With --suspend, it suspends every machine that can be suspended, and resumes them when it starts again.",
  options: [
    { flags: "--suspend", description: "suspend the machines that run, and wait for it" },
    timeOption("--timeout <time>", "how long that may take", DRAIN_TIMEOUT_S, "2m"),
  ],
  examples: ["hibernaut drain", "hibernaut drain --suspend --timeout 2m", "hibernaut drain --suspend --json"],
  async run(context, _args, { suspend = false, timeout }) {
    if (timeout !== undefined && !suspend)
      throw new UsageError("--timeout limits how long suspends may take. Add --suspend, or leave it out.");
    const begun = await (await context.client()).startDrain({ suspend, ...given({ timeout }) });
    return suspend ? suspendedResult(await followDrain(context, begun)) : { document: begun, text: PLAIN };
  },
});

const undrain = command({
  name: "undrain",
  summary: "End a drain",
  description: "The platform starts machines again, and resumes those that the drain suspended.",
  examples: ["hibernaut undrain"],
  async run(context) {
    const client = await context.client();
    const before = await client.getDrain();
    const document = await client.endDrain();
    if (before.state === "none") return { document, text: "The platform is not draining." };
    const asleep = before.machines.filter(({ result }) => result === "suspended" || result === "suspending").length;
    const resumed = asleep === 0 ? "" : ` Resuming ${count(asleep, "machine")} that it suspended.`;
    return { document, text: `The drain is over.${resumed}` };
  },
});

/** A machine that cannot be suspended is reported. One that could not be in time is a failure. */
function suspendedResult(document: Drain): Result {
  const suspended = document.machines.filter(({ result }) => result === "suspended").length;
  const left = document.machines.filter(({ result }) => result !== "suspended");
  const inTime = left.every(({ reason }) => reason?.startsWith("it cannot be suspended") === true);
  const text = lines(
    `Drained: ${count(suspended, "machine")} suspended${left.length === 0 ? "" : `, ${left.length} left running`}.`,
    ...left.map(({ app_name: app, name, machine_id: id, reason, result }) => {
      return `  ${app}/${name} (${id}) is ${result === "left" ? "running" : result}${reason === null ? "" : `: ${reason}`}`;
    }),
  );
  const late =
    "Not all machines could be suspended. Run `hibernaut drain --suspend` again to try once more, with --timeout for more time.";
  return { document, text, failures: inTime ? [] : [new CliError("deadline_exceeded", late)] };
}

export const drainCommands: readonly Command[] = [drain, undrain];
