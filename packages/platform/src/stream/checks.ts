/** Tells the stream when checks of machines change. Every result would be far too many. */
import type { CheckResults } from "../checks/results.ts";
import type { Store } from "../store/contract.ts";

/** Machines remembered before those that are no longer checked are forgotten. */
const FORGET_FROM = 1_000;

/**
 * Adds an event whenever a check passes that failed, or fails that passed, and for its first result. Returns a function
 * that ends that.
 */
export function tellChecks(
  results: CheckResults,
  { machines, outbox }: Pick<Store, "machines" | "outbox">,
): () => void {
  /** The last status of each check, by machine. */
  const known = new Map<string, Map<string, string>>();
  return results.subscribe((id) => {
    const before = known.get(id) ?? new Map<string, string>();
    known.set(id, before);
    if (known.size > FORGET_FROM)
      for (const other of known.keys()) if (results.of(other).length === 0) known.delete(other);
    for (const { name: check, status, output, updated_at: at } of results.of(id)) {
      if (before.get(check) === status) continue;
      before.set(check, status);
      const machine = machines.get(id);
      if (machine === undefined) continue;
      const { app, name } = machine;
      outbox.add({ type: `machine.check_${status}`, at, app, machine: id, data: { name, check, output } });
    }
  });
}
