/** TXT records of names. */
import { Resolver } from "node:dns/promises";

/** How long each attempt may take, in milliseconds, and how many there are: someone waits. */
const ATTEMPT_MS = 2_500;
const ATTEMPTS = 2;
/** Answers that mean that there is no such record, rather than that nobody knows. */
const NONE: readonly unknown[] = ["ENODATA", "ENOTFOUND"];

/** Returns the TXT records of a name, none if it has none. Rejects when DNS does not answer, and with the signal's reason. */
export async function txtRecords(name: string, signal: AbortSignal): Promise<string[]> {
  const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS });
  const stop = () => resolver.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return (await resolver.resolveTxt(name)).map((pieces) => pieces.join(""));
  } catch (error) {
    signal.throwIfAborted();
    if (NONE.includes((error as NodeJS.ErrnoException).code)) return [];
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
