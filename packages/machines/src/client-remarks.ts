/**
 * Which of the remarks that clients cause with a request alone a machine's history tells. A history keeps 1000 entries, and
 * all apps share the stream of events: nobody is to push out what others need to see. The audit log has each request. Pure.
 */
import type { MachineEvent } from "@hibernaut/domain/machine";
import type { RemarkName } from "./decide/index.ts";

/** Of each kind of remark, for each machine: a deploy with its lease and its metadata is told in full. */
export const MOST_REMARKS_TOLD = 10;
/** After this, in milliseconds, remarks of the kind are told again. All kinds together need 5 hours to fill a history. */
export const REMARKS_TOLD_FOR_MS = 600_000;

/** Remarks of one kind count together, so that someone who may only send signals does not hide who took a lease. */
const KINDS: Readonly<Partial<Record<RemarkName, "signal" | "metadata" | "lease">>> = {
  signal_sent: "signal",
  metadata_changed: "metadata",
  lease_taken: "lease",
  lease_released: "lease",
  lease_cleared: "lease",
};

/** The remarks of one machine. */
export class ClientRemarks {
  readonly #told = new Map<string, { sinceMs: number; count: number }>();

  /**
   * Returns the entry as the history is to have it; undefined when it is left out. The last one that is told says with
   * `more_from` when more are. Entries that are not such remarks are returned as they are.
   */
  add(event: MachineEvent): MachineEvent | undefined {
    const kind = KINDS[event.type as RemarkName];
    if (kind === undefined) return event;
    const atMs = Date.parse(event.at);
    const before = this.#told.get(kind);
    const isOver = before === undefined || Math.abs(atMs - before.sinceMs) >= REMARKS_TOLD_FOR_MS; // clocks are set back, too
    const { sinceMs, count } = isOver ? { sinceMs: atMs, count: 0 } : before;
    if (count === MOST_REMARKS_TOLD) return undefined;
    this.#told.set(kind, { sinceMs, count: count + 1 });
    if (count + 1 < MOST_REMARKS_TOLD) return event;
    const moreFrom = new Date(sinceMs + REMARKS_TOLD_FOR_MS).toISOString();
    return { ...event, details: { ...event.details, more_from: moreFrom } };
  }
}
