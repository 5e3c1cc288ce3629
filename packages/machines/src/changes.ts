/** The one stream of changes to machines, told in a fixed order. */
import type { MachineRecord } from "@hibernaut/domain/machine";

/**
 * The order in which the parts of the platform hear of a change, whenever they subscribed. A listener sees what earlier
 * phases made of the change.
 *
 * - `health`: the checks decide whether the machine may take requests
 * - `routing`: the proxies are told about the machine, including its health
 * - `waiting`: clients that wait for a state, or follow logs, see the change when the proxies already know it
 */
export const CHANGE_PHASES = ["health", "routing", "waiting"] as const;

export type ChangePhase = (typeof CHANGE_PHASES)[number];

export type ChangeListener = (record: MachineRecord) => void;

/**
 * @example
 * const unsubscribe = changes.subscribe("routing", (record) => tellProxies(record));
 */
export class MachineChanges {
  readonly #listeners: Readonly<Record<ChangePhase, Set<ChangeListener>>> = {
    health: new Set(),
    routing: new Set(),
    waiting: new Set(),
  };

  /** Calls `listener` for every machine that is new or has changed. Returns a function that ends that. */
  subscribe(phase: ChangePhase, listener: ChangeListener): () => void {
    const listeners = this.#listeners[phase];
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Tells all listeners, phase by phase, before it returns. */
  publish(record: MachineRecord): void {
    for (const phase of CHANGE_PHASES) for (const listener of this.#listeners[phase]) listener(record);
  }
}
