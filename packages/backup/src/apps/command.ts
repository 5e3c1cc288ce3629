/** Runs what an app says about its backups in one of its machines. */
import type { Readable } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import { abortable, within } from "@hibernaut/lib/async";
import type { Commands } from "@hibernaut/machines";

/** What is read of what a command prints, in bytes: a number, or the end of a complaint. */
const MOST_OUTPUT_BYTES = 4096;
/** What is told of a complaint, in characters: all of them are kept with the target. */
const MOST_REASON = 200;
/** How much later than the guest the host ends a command, in milliseconds. */
const GRACE_MS = 5000;

interface Told {
  app: string;
  machine: string;
  args: string[];
  /** Milliseconds. */
  timeoutMs: number;
}

/**
 * Runs a command, and resolves with what it printed. Rejects as {@link Commands.run} does, with `deadline_exceeded` when it took too
 * long, and with `failed_precondition` and what it complained about when it failed.
 */
export async function runIn(
  commands: Pick<Commands, "run">,
  { app, machine, args, timeoutMs }: Told,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  // The guest counts its own time, which stops while it sleeps, and may count wrongly on purpose.
  const limit = within(signal, timeoutMs + GRACE_MS, "the command");
  const command = commands.run(app, machine, { args, timeoutMs });
  const kill = () => command.kill();
  limit.addEventListener("abort", kill, { once: true });
  const shown = `\`${args.join(" ").slice(0, 200)}\` in machine ${machine}`;
  const late = () => new HibernautError("deadline_exceeded", `${shown} did not end within ${timeoutMs / 1000} s.`);
  try {
    const ending = Promise.all([endOf(command.stdout), endOf(command.stderr), command.exit]);
    const [said, complaint, exit] = await abortable(ending, limit);
    if (exit.timedOut) throw late();
    if (exit.code === 0 && exit.signal === 0 && exit.failure === undefined) return said;
    const why = exit.failure ?? (complaint || (exit.signal > 0 ? `signal ${exit.signal}` : `exit code ${exit.code}`));
    throw new HibernautError("failed_precondition", `${shown} failed: ${why.slice(-MOST_REASON)}`);
  } catch (error) {
    signal.throwIfAborted();
    throw limit.aborted ? late() : error;
  } finally {
    limit.removeEventListener("abort", kill);
  }
}

/** Reads everything, and keeps the end. */
async function endOf(output: Readable): Promise<string> {
  let kept = Buffer.alloc(0);
  for await (const chunk of output as AsyncIterable<Buffer>)
    kept = Buffer.concat([kept, chunk]).subarray(-MOST_OUTPUT_BYTES);
  return kept.toString("utf8").trim();
}
