/** Waking a machine whose paused VMM was kept: nothing is loaded, its CPUs just continue. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { abortable, within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { KeptGuest } from "../guest.ts";
import { letRun } from "./let-run.ts";
import { NotOwned, requireOwned } from "./owned.ts";
import type { EffectPorts } from "./ports.ts";
import type { Resumed } from "./resume.ts";

/**
 * A paused QEMU answers within a millisecond. One that needs longer has other problems, and the snapshot is at hand. On a
 * slow host, it gets as many times more.
 */
const ANSWER_MS = 1000;

/**
 * Lets the kept VMM run on if it is the one of the machine's snapshot and answers; otherwise it ends, the snapshot is as
 * it was, and the result is undefined.
 */
export async function wakeKept(
  record: MachineRecord,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<Resumed | undefined> {
  const { guest, note, snapshots, log, steps } = ports;
  const { kept } = guest;
  if (kept === undefined) return undefined;
  const { snapshot } = record;
  const useless = await steps.time("check", async () => {
    // A copy of a volume that is being made has to be finished first.
    await ports.volumes.disks(record.config.mounts, { grow: false, signal });
    return flawOf(kept, record, ports, signal);
  });
  if (snapshot === null || useless !== undefined) {
    log.info({ machine: record.id, reason: useless }, "the kept VMM cannot be used; it ends");
    await guest.kill();
    return undefined;
  }
  const live = guest.wakeKept();
  if (live === undefined) return undefined;
  let consumed = false;
  try {
    await requireOwned(record.id, ports, signal);
    snapshots.interrupt(record.id);
    // As in every resume: spent in the store first, so that it never runs twice.
    const began = performance.now();
    note({ type: "snapshot_consumed" });
    steps.add("consume", began);
    consumed = true;
    const limit = within(signal, ports.settings.resumeTimeoutMs, "the resume");
    const { created_at: createdAt } = snapshot;
    const details = await letRun({ record, createdAt, clockMs: kept.clockMs, ...live }, ports, { limit, signal });
    return { kind: "warm", details };
  } catch (error) {
    await guest.kill();
    if (signal.aborted || !consumed || error instanceof NotOwned) throw error;
    const reason = `resume_failed: ${messageOf(error)}`;
    log.warn({ machine: record.id, reason }, "a warm start failed; starting cold");
    note({ type: "snapshot_refused", reason });
    await snapshots.discard(record.id, snapshot.generation);
    return { kind: "cold", reason };
  }
}

/** Why the kept VMM is not what the machine needs; undefined if it is. */
async function flawOf(
  { vmm, generation }: KeptGuest,
  { app, snapshot }: MachineRecord,
  { secrets, settings }: Pick<EffectPorts, "secrets" | "settings">,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (snapshot?.generation !== generation) return "it belongs to another snapshot";
  if ((snapshot.secrets ?? "") !== secrets.version(app)) return "the app's secrets have changed";
  const answer = within(signal, ANSWER_MS * settings.slowFactor, "the kept VMM");
  const state = await abortable(vmm.state(), answer).catch(messageOf);
  signal.throwIfAborted();
  return state === "paused" ? undefined : `it should be paused, and is: ${state}`;
}
