/** Makes the backups that are due, one after the other. */
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { BackupTargets } from "./targets.ts";

/** Between two looks at what is due, in milliseconds. The first look waits as long: a start has better things to do. */
const LOOK_MS = 30_000;

interface SchedulerOptions {
  targets: Pick<BackupTargets, "look" | "run" | "isBusy">;
  lookMs?: number;
  log: {
    info(fields: Record<string, unknown>, message: string): void;
    warn(fields: Record<string, unknown>, message: string): void;
  };
}

/** Looks until it is ended by the function that is returned. */
export function startScheduler(options: SchedulerOptions): () => Promise<void> {
  const end = new AbortController();
  const work = repeat(options, end.signal);
  return () => {
    end.abort(new Error("the platform is shutting down"));
    return work;
  };
}

async function repeat({ targets, lookMs = LOOK_MS, log }: SchedulerOptions, signal: AbortSignal): Promise<void> {
  /** Whose backup is due and waits for another one. It is told once. */
  const waiting = new Set<string>();
  while (!signal.aborted) {
    try {
      await delay(lookMs, undefined, { signal, ref: false });
      for (const name of await targets.look()) {
        if (signal.aborted) return;
        if (targets.isBusy) {
          if (!waiting.has(name)) log.info({ target: name }, "a backup is due, and waits until another one has ended");
          waiting.add(name);
          continue;
        }
        waiting.delete(name);
        // What is overdue is told also while one hangs. The others wait, as they see that it is at work.
        background(targets.run(name), "a scheduled backup");
        await setImmediate();
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ reason: messageOf(error) }, "scheduled backups failed");
    }
  }
}
