/** Reading a whole memory before it is resumed, when it may have changed from outside. */
import { guestSize } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isHostTrouble } from "@hibernaut/lib/absence";
import { within } from "@hibernaut/lib/async";
import type { FittingSnapshot } from "@hibernaut/snapshots";
import type { EffectPorts } from "./ports.ts";

/** A disk that is slower than this cannot resume machines in time either. MB per second. */
const SLOWEST_READ_MB = 8;
/** For a disk that has to wake up first. */
const READ_GRACE_MS = 10_000;

/** How long it may take to read all of a machine's memory from the disk, or to copy it. */
export function readLimitMs({ config }: Pick<MachineRecord, "config">): number {
  return READ_GRACE_MS + (guestSize(config).memoryMb / SLOWEST_READ_MB) * 1000;
}

/**
 * Returns why the memory cannot be used, `snapshot_corrupt: ...`. It has no part in the time that a resume may take, or
 * a slow disk would cost a large machine its memory after every restart of the host. Rejects when aborted, and with
 * `unavailable` when the disk is too slow; the snapshot is not lost then.
 */
export async function damaged(
  record: MachineRecord,
  { files }: FittingSnapshot,
  { log }: Pick<EffectPorts, "log">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const limitMs = readLimitMs(record);
  const began = performance.now();
  try {
    const found = await files.damage(within(signal, limitMs, "reading the memory"));
    if (found === undefined) return undefined;
    const durationMs = Math.round(performance.now() - began);
    log.info({ machine: record.id, why: found.why, durationMs }, "all of the memory was read before the resume");
    return found.reason;
  } catch (error) {
    if (signal.aborted || isHostTrouble(error)) throw error;
    throw new HibernautError(
      "unavailable",
      `The memory of machine ${record.id} could not be read within ${Math.round(limitMs / 1000)} s. It is kept: look at the disk of the data directory, then start the machine again.`,
    );
  }
}
