/** Suspending every machine that may be suspended, a few at a time, until a deadline. */
import { HibernautError } from "@hibernaut/domain/errors";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { eligibilityOf } from "../eligibility.ts";
import { settled } from "../waiting.ts";
import { isAwake } from "./rules.ts";

/** A suspend can be cancelled by a wake that was on its way. One that fails twice fails again. */
const TRIES = 2;

type SuspendAllDependencies = Pick<MachineDependencies, "settings" | "bundles" | "finishRequests">;

/**
 * Settles when every machine that was awake is asleep, or its history says why it was left. When `limit` aborts, the
 * machines that are not asleep are left with its reason, and suspends that have begun continue. When `signal` does, which
 * `limit` follows, nothing more is recorded.
 */
export async function suspendAll(
  controllers: Pick<ControllerSet, "all">,
  deps: SuspendAllDependencies,
  { limit, signal }: { limit: AbortSignal; signal: AbortSignal },
): Promise<void> {
  const seen = new Set<string>();
  // More than once: a machine that its restart policy brought up meanwhile is awake, too.
  for (;;) {
    const queue = controllers.all().filter(({ record }) => isAwake(record) && !seen.has(record.id));
    if (queue.length === 0 || signal.aborted) return;
    for (const { record } of queue) seen.add(record.id);
    // All at once: it costs nothing, and one app with long requests must not use up the time of the others.
    const finished = new Map(queue.map(({ record: { id } }) => [id, deps.finishRequests?.(id) ?? Promise.resolve()]));
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const reason = await suspendOne(next, deps, { limit, requests: finished.get(next.record.id) }).catch(messageOf);
        if (signal.aborted) return;
        if (reason !== undefined && isAwake(next.record)) next.note({ type: "not_suspended", reason });
      }
    };
    await Promise.all(Array.from({ length: deps.settings.drainSuspends }, worker));
  }
}

/** Suspends a machine. Returns why it keeps running; undefined if it does not. */
async function suspendOne(
  machine: MachineController,
  deps: SuspendAllDependencies,
  { limit, requests = Promise.resolve() }: { limit: AbortSignal; requests: Promise<void> | undefined },
): Promise<string | undefined> {
  for (let tries = 0; ; tries += 1) {
    await settled(machine, limit);
    const { state, stateReason } = machine.record;
    if (state !== "running") return undefined;
    const { eligible, reasons } = eligibilityOf(machine.record, deps);
    if (!eligible) return `it cannot be suspended: ${reasons.join("; ")}`;
    if (tries >= TRIES) return stateReason ?? "something woke it";
    await abortable(requests, limit);
    try {
      machine.command({ type: "suspend", drain: true, details: { by: "drain" } });
    } catch (error) {
      // Something else began while its requests ended.
      if (!(error instanceof HibernautError)) throw error;
    }
  }
}
