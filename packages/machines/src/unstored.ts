/**
 * What is shown and logged while the outcome of an effect cannot be stored, which is mostly because the disk is full. The
 * machine is then not what its record says, and people and proxies must learn of that before the record can change.
 */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isHostTrouble } from "@hibernaut/lib/absence";
import { messageOf, withoutPeriod } from "@hibernaut/lib/text";
import type { Decision } from "./decide/index.ts";
import type { Logger } from "./dependencies.ts";
import { happened } from "./logs/sentences.ts";

/** How often the log says again that an outcome cannot be stored, in milliseconds. A full disk may stay full for days. */
export const REPEAT_LOG_MS = 60_000;

/** What readers of a record see in place of what is stored. */
export type Unstored = Pick<MachineRecord, "stateReason"> & Partial<Pick<MachineRecord, "unreachable">>;

/**
 * Returns what to show while `decision` cannot be stored because of `error`. Undefined when the decision changes nothing
 * that others can see.
 */
export function unstored({ record, tell: { history } }: Decision, error: unknown): Unstored | undefined {
  if (history === undefined) return undefined;
  const stateReason = `${happened(history)}. This cannot be stored: ${why(error)}. ${remedy(error)}`;
  // The proxy sends no requests to a guest that is gone or about to go.
  return record.state === "running" ? { stateReason } : { stateReason, unreachable: stateReason };
}

/** Says in the log that an outcome cannot be stored, and that it is stored at last. */
export class UnstoredLog {
  readonly #log: Pick<Logger, "info" | "error">;
  readonly #fields: { machine: string; outcome: string };
  #silentMs = Number.POSITIVE_INFINITY;
  #said = false;

  constructor(log: Pick<Logger, "info" | "error">, fields: { machine: string; outcome: string }) {
    this.#log = log;
    this.#fields = fields;
  }

  /** An attempt failed; the next one follows after `waitMs` milliseconds. */
  failed(error: unknown, waitMs: number): void {
    if (this.#silentMs >= REPEAT_LOG_MS) {
      // The stack of a full disk says nothing. Any other failure is a fault in the platform.
      const details = isDiskFault(error) ? { reason: `${why(error)}. ${remedy(error)}` } : { err: error };
      this.#log.error({ ...this.#fields, ...details }, "an outcome cannot be stored; trying again until it can");
      this.#silentMs = 0;
      this.#said = true;
    }
    this.#silentMs += waitMs;
  }

  /** An attempt succeeded. Returns whether earlier ones had failed. */
  stored(): boolean {
    if (this.#said) this.#log.info(this.#fields, "the outcome is stored");
    return this.#said;
  }
}

function isDiskFault(error: unknown): boolean {
  return isHibernautError(error, "unavailable") || isHostTrouble(error);
}

function why(error: unknown): string {
  const { reason } = isHibernautError(error, "unavailable") ? error.details : {};
  return typeof reason === "string"
    ? `the platform cannot write its database (${reason})`
    : withoutPeriod(messageOf(error));
}

function remedy(error: unknown): string {
  if (!isDiskFault(error)) return "The platform tries again every few seconds; see its log";
  const { cause } = isHibernautError(error) ? error.details : {};
  const locked = typeof cause === "string" && /^SQLITE_(READONLY|CANTOPEN)/.test(cause);
  return `${locked ? "Make the data directory writable" : "Free some disk space"}; the platform then continues by itself`;
}
