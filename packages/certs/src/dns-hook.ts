/** Runs the operator's program that adds and removes TXT records. */
import { within } from "@hibernaut/lib/async";
import { failureReason, runUntilAborted } from "@hibernaut/lib/exec";
import { AuthorityFault } from "./contract.ts";

interface DnsHookOptions {
  program: string;
  /** How long one call may take, in milliseconds: most of it is the wait until the record is visible everywhere. */
  timeoutMs: number;
  /** Told when a record could not be removed, which is no reason to fail an order. */
  onTrouble(record: string, reason: string): void;
}

/** How long a removal may take, in milliseconds: nobody waits until it is visible, and a shutdown waits for it. */
const REMOVE_MS = 10_000;

/**
 * Calls `<program> add <record> <value>`, with all three in its environment as well: one value in 64 begins with a hyphen,
 * which programs may take for an option. It returns once the record is visible to the authority. Resolves with a
 * function that calls it with `remove`.
 */
export async function addRecord(
  { program, timeoutMs, onTrouble }: DnsHookOptions,
  { record, value }: { record: string; value: string },
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const call = (action: string, limit: AbortSignal) => {
    const environment = { HIBERNAUT_DNS_ACTION: action, HIBERNAUT_DNS_RECORD: record, HIBERNAUT_DNS_VALUE: value };
    return runUntilAborted(program, [action, record, value], limit, environment);
  };
  const remove = async () => {
    // Also after an abort: the record would stay for good.
    const limit = AbortSignal.timeout(Math.min(timeoutMs, REMOVE_MS));
    await call("remove", limit).catch((error: unknown) => onTrouble(record, failureReason(error)));
  };
  try {
    await call("add", within(signal, timeoutMs, `${program} add ${record}`));
  } catch (error) {
    // It may have added the record before it failed.
    await remove();
    signal.throwIfAborted();
    throw new AuthorityFault("refused", `The DNS hook could not add ${record}: ${failureReason(error)}`, {
      cause: error,
    });
  }
  return remove;
}
