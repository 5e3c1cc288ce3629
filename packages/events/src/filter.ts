/** Which events a reader gets. Pure. */
import type { StreamEvent } from "@hibernaut/domain/stream-event";

/** All where nothing is said. */
export interface StreamFilter {
  app?: string | undefined;
  /** Id of a machine. */
  machine?: string | undefined;
  /** Types such as `machine.suspended`; `machine` and `machine.*` are all that happens to machines. Empty: all. */
  types: readonly string[];
  /**
   * The apps that the reader may see, each with the sequence number of its first event: those before are of an earlier app
   * of the same name. Undefined: all, and what belongs to no app.
   */
  apps?: ReadonlyMap<string, number> | undefined;
}

/** Whether an event is of a type, or of a group of types. */
export function isOfType(type: string, wanted: string): boolean {
  const group = wanted.replace(/\.\*$/, "");
  return wanted === "*" || type === wanted || type.startsWith(`${group}.`);
}

/** Whether a reader gets an event. */
export function passes(event: StreamEvent, filter: StreamFilter): boolean {
  const { type, app, machine } = event;
  if (filter.app !== undefined && app !== filter.app) return false;
  if (filter.machine !== undefined && machine !== filter.machine) return false;
  if (filter.apps !== undefined && !isWithin(event, filter.apps)) return false;
  return filter.types.length === 0 || filter.types.some((wanted) => isOfType(type, wanted));
}

/** The filter for what comes after an event: a later app of the name of one that is deleted belongs to others. */
export function filterAfter(event: StreamEvent, filter: StreamFilter): StreamFilter {
  const { type, app } = event;
  if (type !== "app.deleted" || filter.apps === undefined || !isWithin(event, filter.apps)) return filter;
  return { ...filter, apps: new Map([...filter.apps].filter(([name]) => name !== app)) };
}

function isWithin({ app, sequence }: StreamEvent, apps: ReadonlyMap<string, number>): boolean {
  return app !== null && sequence >= (apps.get(app) ?? Infinity);
}
