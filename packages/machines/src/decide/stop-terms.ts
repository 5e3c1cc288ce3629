/** What becomes of a stop under way for which someone sets terms: they may only bring its end nearer. */
import type { StopConfig } from "@hibernaut/domain/config";

/** How long an app has to exit that says nothing else, in seconds: the default of fly.io. */
export const OWN_TIMEOUT_S = 5;

interface Superseding {
  /** Of the stop from now on, over those of the machine. */
  terms: StopConfig;
  /** Nobody who has less time, or asks for SIGKILL, wants to wait for open requests. */
  hurried?: true;
}

/** Undefined when `terms` change nothing: what would move the end later is ignored, or a machine could be kept from ending. */
export function superseding(own: StopConfig = {}, underWay: StopConfig, terms: StopConfig): Superseding | undefined {
  if (underWay.signal === "SIGKILL") return undefined; // nothing is nearer
  const before = { timeout: OWN_TIMEOUT_S, ...own, ...underWay };
  const { signal = before.signal, timeout = before.timeout } = terms;
  const nearer = timeout < before.timeout;
  if (!nearer && signal === before.signal) return undefined;
  return {
    terms: { ...underWay, ...(signal !== undefined && { signal }), ...(nearer && { timeout }) },
    ...((nearer || signal === "SIGKILL") && { hurried: true }),
  };
}
