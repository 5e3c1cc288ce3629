/** What the stream of events tells: everything that changes on the platform, in one order. Pure. */
import type { MachineEvent, MachineRecord } from "./machine.ts";

/** What types of events begin with. */
export const EVENT_GROUPS = [
  "app",
  "backup",
  "certificate",
  "hostname",
  "machine",
  "platform",
  "release",
  "secret",
  "template",
  "volume",
  "webhook",
] as const;

/** What happened, before it has its place in the order. */
export interface StreamFact {
  /** What it happened to and what happened, such as `machine.suspended`. */
  type: string;
  /** RFC 3339. */
  at: string;
  app: string | null;
  machine: string | null;
  data: Readonly<Record<string, unknown>>;
}

/** An event of the stream. `sequence` counts up; numbers may be missing between two events. */
export interface StreamEvent extends StreamFact {
  sequence: number;
}

/**
 * A machine's event for the stream: named by the state that it led to, or by what happened where the state stayed.
 * A start that is over says how the machine was woken, and how long that took.
 */
export function machineFact(machine: MachineRecord, { at, type, from, to, details }: MachineEvent): StreamFact {
  const { id, app, name, stateReason, lastBoot } = machine;
  const started = to === "running" && from !== to && lastBoot !== null;
  return {
    type: `machine.${from === to ? type : to}`,
    at,
    app,
    machine: id,
    data: {
      name,
      event: type,
      from,
      to,
      ...(stateReason !== null && { reason: stateReason }),
      ...(started && { start: lastBoot }),
      ...(Object.keys(details).length > 0 && { details }),
    },
  };
}
