/** Tries the checks of a machine outside of their intervals. */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { checksOf, EAGER_MS } from "./policy.ts";
import { probe } from "./probe.ts";

/**
 * Tries the checks of a running machine until each has passed once. Never rejects: resolves with what is wrong, as text, when one
 * has not passed before the signal aborts, and with undefined when all have, or there are none.
 */
export async function passOnce(
  { config, address }: Pick<MachineRecord, "config" | "address">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const tried = checksOf(config).map(async (check) => {
    let last = "it did not answer in time";
    while (!signal.aborted) {
      const { passed, output } = await probe(address, check, signal);
      if (passed) return undefined;
      if (signal.aborted) break;
      last = output;
      await delay(EAGER_MS, undefined, { signal, ref: false }).catch(() => {}); // aborted: the loop ends
    }
    return `its check ${check.name} does not pass: ${last}`;
  });
  return (await Promise.all(tried)).find((fault) => fault !== undefined);
}
