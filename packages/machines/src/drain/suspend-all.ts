/** Suspending every machine that may be suspended, a few at a time, until a deadline. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { Eligibility, MachineRecord } from "@hibernaut/domain/machine";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { MachineController } from "../controller.ts";
import { isAwake } from "./rules.ts";
import { settled } from "./settled.ts";

/** A suspend can be cancelled by a wake that was on its way. One that fails twice fails again. */
const TRIES = 2;

/** What is needed to suspend machines. */
export interface SuspendAllPorts {
  /** The machines that exist now. */
  machines(): MachineController[];
  /** Whether a machine may be suspended. */
  eligibilityOf(record: MachineRecord): Eligibility;
  /** How many are suspended at a time. */
  atOnce: number;
  /** Settles when the requests that the proxies have open on a machine have ended, or had their time. */
  finishRequests?: ((machineId: string) => Promise<void>) | undefined;
}

/**
 * Settles when every machine that was awake is asleep, or its history says why it was left. When `limit` aborts, the
 * machines that are not asleep are left with its reason, and suspends that have begun continue. When `signal` does, which
 * `limit` follows, nothing more is recorded.
 */
export async function suspendAll(ports: SuspendAllPorts, limit: AbortSignal, signal: AbortSignal): Promise<void> {
  const seen = new Set<string>();
  // More than once: a machine that its restart policy brought up meanwhile is awake, too.
  for (;;) {
    const queue = ports.machines().filter(({ record }) => isAwake(record) && !seen.has(record.id));
    if (queue.length === 0 || signal.aborted) return;
    for (const { record } of queue) seen.add(record.id);
    // All at once: it costs nothing, and one app with long requests must not use up the time of the others.
    const finished = new Map(queue.map(({ record: { id } }) => [id, ports.finishRequests?.(id) ?? Promise.resolve()]));
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const reason = await suspendOne(next, ports, { limit, requests: finished.get(next.record.id) }).catch(
          messageOf,
        );
        if (signal.aborted) return;
        if (reason !== undefined && isAwake(next.record)) next.leaveRunning(reason);
      }
    };
    await Promise.all(Array.from({ length: ports.atOnce }, worker));
  }
}

/** Suspends a machine. Returns why it keeps running; undefined if it does not. */
async function suspendOne(
  machine: MachineController,
  { eligibilityOf }: SuspendAllPorts,
  { limit, requests = Promise.resolve() }: { limit: AbortSignal; requests: Promise<void> | undefined },
): Promise<string | undefined> {
  for (let tries = 0; ; tries += 1) {
    await settled(machine, limit);
    const { state, stateReason } = machine.record;
    if (state !== "running") return undefined;
    const { eligible, reasons } = eligibilityOf(machine.record);
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
