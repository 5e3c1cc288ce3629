/** Tells the stream when checks of machines change. Every result would be far too many. */
import type { Store } from "@hibernaut/store";
import type { CheckResults } from "./results.ts";

/** A check that changes all the time is told at most this often, in milliseconds: the guest decides how it answers. */
const TELL_EVERY_MS = 10_000;
/** Machines remembered before those that are no longer checked are forgotten. */
const FORGET_FROM = 1_000;

/** What was told of a check last, and when. */
interface Told {
  status: string;
  at: number;
}

/**
 * Adds an event whenever a check passes that failed, or fails that passed, and for its first result. Returns a function
 * that ends that. Nothing depends on these events: when one cannot be stored, `onFault` is told, and the next result tries
 * again.
 */
export function tellChecks(
  results: CheckResults,
  { machines, outbox }: Pick<Store, "machines" | "outbox">,
  { onFault, now = () => performance.now() }: { onFault(error: unknown): void; now?(): number },
): () => void {
  /** By machine and check. */
  const known = new Map<string, Map<string, Told>>();
  const tell = (id: string): void => {
    const before = known.get(id) ?? new Map<string, Told>();
    known.set(id, before);
    if (known.size > FORGET_FROM)
      for (const other of known.keys()) if (results.of(other).length === 0) known.delete(other);
    for (const { name: check, status, output, updated_at: at } of results.of(id)) {
      const last = before.get(check);
      if (last?.status === status || (last !== undefined && now() - last.at < TELL_EVERY_MS)) continue;
      const machine = machines.get(id);
      if (machine === undefined) continue;
      const { app, name } = machine;
      outbox.add({ type: `machine.check_${status}`, at, app, machine: id, data: { name, check, output } });
      before.set(check, { status, at: now() });
    }
  };
  return results.subscribe((id) => {
    try {
      tell(id);
    } catch (error) {
      onFault(error);
    }
  });
}
