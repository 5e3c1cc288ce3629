/** Which events a reader gets. Pure. */
import type { StreamEvent } from "../domain/stream-event.ts";

/** All where nothing is said. */
export interface StreamFilter {
  app?: string | undefined;
  /** Id of a machine. */
  machine?: string | undefined;
  /** Types such as `machine.suspended`; `machine` and `machine.*` are all that happens to machines. Empty: all. */
  types: readonly string[];
  /** The apps that the reader may see. Undefined: all, and what belongs to no app. */
  apps?: readonly string[] | undefined;
}

/** Whether an event is of a type, or of a group of types. */
export function isOfType(type: string, wanted: string): boolean {
  const group = wanted.replace(/\.\*$/, "");
  return wanted === "*" || type === wanted || type.startsWith(`${group}.`);
}

/** Whether a reader gets an event. */
export function passes({ type, app, machine }: StreamEvent, filter: StreamFilter): boolean {
  if (filter.app !== undefined && app !== filter.app) return false;
  if (filter.machine !== undefined && machine !== filter.machine) return false;
  if (filter.apps !== undefined && (app === null || !filter.apps.includes(app))) return false;
  return filter.types.length === 0 || filter.types.some((wanted) => isOfType(type, wanted));
}
