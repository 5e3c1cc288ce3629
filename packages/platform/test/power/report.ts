/** What people read about a run: pure functions of the journal and of what was found. */
import type { After, Entry } from "./journal.ts";

/** How each machine was found: its state after recovery, and how it then started. */
export function howFound({ machines }: After): Record<string, string> {
  return Object.fromEntries(
    Object.entries(machines).map(([id, { state, boot, lines }]) => [
      id,
      `${state}, ${boot?.kind ?? "not started"} (${boot?.reason ?? ""}), ${lines?.length ?? 0} lines`,
    ]),
  );
}

/** What each machine was doing when the power failed, as far as the journal knows: `running, suspend`. */
export function situation(entries: readonly Entry[]): Record<string, string> {
  const states: Record<string, string> = {};
  for (const entry of entries) {
    if (entry.kind === "reported") states[entry.machine] = entry.state;
    if (entry.kind === "ordered") states[entry.machine] = `${states[entry.machine] ?? "new"}, ${entry.order}`;
  }
  return states;
}
