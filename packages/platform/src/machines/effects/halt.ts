/** Ending guests: stop, update and destroy. */
import { setTimeout as delay } from "node:timers/promises";
import { abortable } from "../../lib/async.ts";
import { messageOf } from "../../lib/text.ts";
import { stopOf } from "../environment.ts";
import { describeExit } from "../restart.ts";
import type { MachineRecord } from "../../domain/machine.ts";
import type { EffectContext, EffectResult } from "./context.ts";

/** From the end of the app to the end of the VMM: a flush of the disks and a power off. */
const POWER_OFF_MS = 10_000;
/** The same with volumes, of which every write counts: a memory full of them goes to a slow disk. */
const UNMOUNT_MS = 45_000;
/** A machine that is destroyed has volumes to leave in order, but no longer the right to take its time. */
const LAST_GRACE_MS = 5_000;

/** Stops the guest and forgets its state: memory, snapshot and, at the next start, the writable layer. */
export async function halt(context: EffectContext): Promise<EffectResult> {
  try {
    await endGuest(context);
    await forgetState(context);
    const stateReason = context.exit === undefined ? null : describeExit(context.exit);
    return {
      outcome: "halted",
      patch: { ...FORGOTTEN, coldReason: "stopped", stateReason },
      details: stateReason === null ? {} : { reason: stateReason },
    };
  } catch (error) {
    return { outcome: "halt_failed", patch: { stateReason: messageOf(error) }, details: { reason: messageOf(error) } };
  }
}

/** Puts the pending configuration in force. What was running is ended first, and started by what follows. */
export async function applyUpdate(context: EffectContext): Promise<EffectResult> {
  const { pending } = context.record;
  if (pending === null) return { outcome: "update_failed", details: { reason: "no update was stored" } };
  try {
    await endGuest(context);
    await forgetState(context);
    const { config, version, imageDigest, bundleVersion, coldReason } = pending;
    // The machine itself is what it was, also its writable layer: only what it remembers had to go.
    if (coldReason !== undefined) {
      const forgotten = { snapshot: null, capturing: null, pending: null, coldReason };
      return { outcome: "updated", patch: forgotten, details: { reason: coldReason } };
    }
    const patch = {
      ...FORGOTTEN,
      config,
      version,
      imageDigest,
      bundleVersion,
      pending: null,
      coldReason: "updated",
      stateReason: null,
    };
    return { outcome: "updated", patch, details: { version } };
  } catch (error) {
    return {
      outcome: "update_failed",
      patch: { pending: null, stateReason: messageOf(error) },
      details: { reason: messageOf(error) },
    };
  }
}

/** Deletes everything that the machine has on the host. */
export async function remove(context: EffectContext): Promise<EffectResult> {
  try {
    if (hasVolumes(context)) await endGuest(context);
    await context.kill();
    await context.deps.network.detach(context.record.id);
    await context.machineLog.end();
    await context.deps.files.remove(context.record.id);
    return { outcome: "removed", patch: { snapshot: null, capturing: null, pending: null } };
  } catch (error) {
    context.machineLog.reopen();
    return {
      outcome: "remove_failed",
      patch: { stateReason: messageOf(error) },
      details: { reason: messageOf(error) },
    };
  }
}

const FORGOTTEN = {
  snapshot: null,
  capturing: null,
  resetLayer: true,
  keepAwake: null,
} satisfies Partial<MachineRecord>;

async function endGuest(context: EffectContext): Promise<void> {
  const { deps, record, live, signal } = context;
  if (live === undefined) return;
  const image = await deps.images.get(record.imageDigest);
  // A machine that is destroyed is not waited for.
  if (context.exit === undefined && record.state !== "destroying")
    await abortable(deps.finishRequests?.(record.id) ?? Promise.resolve(), signal).catch(() => {});
  const { signal: number, graceMs: wanted } = stopOf(record.config, image?.config);
  const graceMs = record.state === "destroying" ? Math.min(wanted, LAST_GRACE_MS) : wanted;
  live.agent.stop(number, graceMs);
  const tooLong = delay(graceMs + (hasVolumes(context) ? UNMOUNT_MS : POWER_OFF_MS), undefined, { ref: false });
  // Superseded (destroy): no more patience with the app.
  await abortable(Promise.race([live.vmm.exited, tooLong]), signal).catch(() => {});
  await context.kill();
}

function hasVolumes({ record }: EffectContext): boolean {
  return (record.config.mounts ?? []).length > 0;
}

async function forgetState({ deps, record }: EffectContext): Promise<void> {
  await deps.snapshots.discardOthers(record.id, undefined);
  await deps.files.forgetMemory(record.id);
}
