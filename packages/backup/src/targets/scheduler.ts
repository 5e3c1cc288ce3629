/** Makes the backups that are due, and the drills, one after the other. */
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "@hibernaut/lib/text";
import type { BackupTargets } from "./targets.ts";
import type { Log } from "./work.ts";

/** Between two looks at what is due, in milliseconds. The first look waits as long: a start has better things to do. */
const LOOK_MS = 30_000;

interface SchedulerOptions {
  targets: Pick<BackupTargets, "look" | "start" | "dueDrills" | "isBusy">;
  /** Begins a drill from a target. */
  drill(target: string): Promise<unknown>;
  lookMs?: number;
  log: Log;
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

async function repeat({ targets, drill, lookMs = LOOK_MS, log }: SchedulerOptions, signal: AbortSignal): Promise<void> {
  /** Whose backup is due and waits for another one. It is told once. */
  const waiting = new Set<string>();
  while (!signal.aborted) {
    try {
      await delay(lookMs, undefined, { signal, ref: false });
      // What ends during the look may be among the names, as it was before.
      const wasBusy = targets.isBusy;
      for (const name of await targets.look()) {
        if (signal.aborted) return;
        if (wasBusy || targets.isBusy) {
          if (!waiting.has(name)) log.info({ target: name }, "a backup is due, and waits until another one has ended");
          waiting.add(name);
          continue;
        }
        waiting.delete(name);
        // Its end is not waited for: what is overdue is told also while one hangs.
        await targets.start(name);
      }
      // Backups come first. A drill that waits is due at the next look, too.
      for (const name of await targets.dueDrills()) {
        if (signal.aborted) return;
        if (!targets.isBusy) await drill(name);
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ reason: messageOf(error) }, "scheduled backups failed");
    }
  }
}
