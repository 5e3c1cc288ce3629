/** Runs the command of a release: in a machine of its own, which is destroyed whatever happens. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { isHibernautError } from "@hibernaut/domain/errors";
import type { ReleaseRecord } from "@hibernaut/domain/machine";
import { pinned } from "@hibernaut/domain/pinned";
import { messageOf } from "@hibernaut/lib/text";
import type { Logger } from "../dependencies.ts";
import type { LogEntry } from "../logs/entry.ts";
import type { Logs } from "../resources/logs.ts";
import type { Machines } from "../resources/machines.ts";
import { DESTROY_TIMEOUT_MS } from "../waiting.ts";
import { type CommandEnd, type CommandVerdict, commandConfig, verdictOf } from "./rules.ts";

/** More lines than a command prints before the first of them is read. */
const FIRST_LINES = 10_000;
/** Of the machine's history. It has a few: start, started, end. */
const EVENTS = 100;

interface CommandContext {
  machines: Pick<Machines, "create" | "wait" | "get" | "events" | "destroy">;
  logs: Pick<Logs, "read">;
  log: Logger;
}

/** What to run, and for how long. */
export interface ReleaseCommandRequest {
  app: string;
  release: ReleaseRecord;
  /** The command is what `init` says. {@link commandConfig} changes the rest. */
  config: MachineConfig;
  /** From the creation of the machine to the end of the command. */
  timeoutMs: number;
  /** Cancels the command. */
  signal: AbortSignal;
}

/** What the command prints, in blocks, and at last how it ended. */
export type CommandOutput = AsyncGenerator<(LogEntry | CommandVerdict)[], void>;

/**
 * Creates the machine. What it rejects with is that of a creation; `already_exists` while a command of this release runs.
 * Read the output to its end, or return it early to cancel: both destroy the machine.
 */
export async function startReleaseCommand(
  { app, release, config, timeoutMs, signal }: ReleaseCommandRequest,
  context: CommandContext,
): Promise<CommandOutput> {
  signal.throwIfAborted();
  const { record } = await context.machines.create(app, {
    name: `release-${release.version}-command`,
    config: commandConfig(config, pinned(release.image, release.digest)),
    releaseCommand: release.version,
  });
  const cancel = new AbortController();
  const either = AbortSignal.any([signal, cancel.signal]);
  const ended = settle({ app, id: record.id, timeoutMs, signal: either }, context);
  return output({ app, id: record.id, ended, cancel }, context);
}

interface Running {
  app: string;
  id: string;
  ended: Promise<CommandVerdict>;
  cancel: AbortController;
}

async function* output({ app, id, ended, cancel }: Running, { logs }: CommandContext): CommandOutput {
  const unreadable = new AbortController();
  // The log ends with the machine. One that could not be destroyed has a log that never ends.
  void ended.finally(() => setTimeout(() => unreadable.abort(), DESTROY_TIMEOUT_MS).unref()).catch(() => {});
  try {
    yield* logs.read(app, { machines: [id], limit: FIRST_LINES, follow: true, signal: unreadable.signal });
    yield [await ended];
  } finally {
    cancel.abort();
    await ended;
  }
}

/** Waits for the end of the command, judges it, and destroys the machine. Never rejects. */
async function settle(
  { app, id, timeoutMs, signal }: { app: string; id: string; timeoutMs: number; signal: AbortSignal },
  { machines, log }: CommandContext,
): Promise<CommandVerdict> {
  const end = await machines.wait(app, id, ["stopped", "failed"], { timeoutMs, signal }).then(
    ({ state }): CommandEnd => ({ state }),
    (error: unknown): CommandEnd => {
      if (signal.aborted) return "cancelled";
      return isHibernautError(error, "deadline_exceeded") ? "timeout" : { state: "destroyed" };
    },
  );
  try {
    const { stateReason } = machines.get(app, id).record;
    return verdictOf(end, { stateReason, events: machines.events(app, id, EVENTS), timeoutMs });
  } catch (error) {
    return { ok: false, exitCode: null, reason: `its machine cannot be read: ${messageOf(error)}` };
  } finally {
    await destroy(app, id, { machines, log });
  }
}

async function destroy(
  app: string,
  id: string,
  { machines, log }: Pick<CommandContext, "machines" | "log">,
): Promise<void> {
  try {
    machines.destroy(app, id, { force: true });
  } catch (error) {
    if (isHibernautError(error, "not_found")) return;
    log.error({ machine: id, app, err: error }, "the machine of a release command is destroyed at the next start");
  }
}
