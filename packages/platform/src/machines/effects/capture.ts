/** Suspending a machine: its state to disk, whole, then its VMM away. */
import { messageOf } from "../../lib/text.ts";
import { readyTimeoutMs } from "../../domain/config.ts";
import { type EffectContext, type EffectResult, originOf, within } from "./context.ts";
import { getReady } from "./hooks.ts";

/** The guest flushes its disks before it stands still; one that writes a lot may take a while. */
const QUIESCE_TIMEOUT_MS = 10_000;
const WAKE_TIMEOUT_MS = 10_000;
/** A program that asked for the suspend itself should have its answer before it stands still. */
const REPLY_TIMEOUT_MS = 1_000;

export async function capture(context: EffectContext): Promise<EffectResult> {
  const { deps, record, live } = context;
  const generation = record.capturing;
  if (live === undefined || generation === null)
    return { outcome: "lost", details: { reason: "there is no guest to suspend" } };
  const limit = within(context.signal, deps.settings.suspendTimeoutMs, "the suspend");
  const began = performance.now();
  try {
    if ((await live.vmm.state()) !== "running") throw new Error("the guest stands still; see its state_reason");
    await context.inside.repliesSent(within(limit, REPLY_TIMEOUT_MS, "the reply")).catch(() => limit.throwIfAborted());
    const readyMs = readyTimeoutMs(record.config);
    const unready = readyMs > 0 ? await getReady(context, readyMs) : undefined;
    if (unready !== undefined) deps.log.warn({ machine: record.id, reason: unready }, "suspending all the same");
    const aheadMs = await live.agent.quiesce(within(limit, QUIESCE_TIMEOUT_MS, "flushing the guest's disks"));
    if (context.exit !== undefined) throw new Error("the app ended meanwhile");
    const clockMs = Date.now() + aheadMs;
    await live.vmm.pause();
    const frozen = performance.now();
    const draft = await deps.snapshots.draft(record.id, generation);
    await live.vmm.capture(draft.devices, limit);
    // The last moment to turn back: once it is published, the guest must not go on.
    limit.throwIfAborted();
    const createdAt = new Date().toISOString();
    const size = await deps.snapshots.publish(draft, originOf(record, deps, live.vmm.identity), {
      createdAt,
      clockMs,
    });
    await context.kill();
    const durations = {
      duration_ms: Math.round(performance.now() - began),
      frozen_ms: Math.round(performance.now() - frozen),
    };
    return {
      outcome: "captured",
      patch: {
        snapshot: { generation, created_at: createdAt, size_bytes: size, secrets: deps.secrets.version(record.app) },
        capturing: null,
        coldReason: "",
        stateReason: null,
        // It worked until it slept.
        restarts: 0,
        crash: null,
      },
      details: { size_bytes: size, ...durations, ...(unready !== undefined && { unready }) },
    };
  } catch (error) {
    return turnBack(context, generation, messageOf(error));
  }
}

/** Lets the same guest go on. The generation goes first: it must never be found beside a guest that ran on. */
async function turnBack(context: EffectContext, generation: string, reason: string): Promise<EffectResult> {
  const { deps, record, live, signal } = context;
  try {
    await deps.snapshots.discard(record.id, generation);
    if (live === undefined) throw new Error("the guest is gone");
    await live.vmm.run();
  } catch (error) {
    await context.kill();
    const why = `${reason}; ${messageOf(error)}`;
    deps.log.warn(
      { machine: record.id, reason: why },
      "a guest was lost: it did not go on after a suspend was given up",
    );
    return { outcome: "lost", patch: { capturing: null }, details: { reason: why } };
  }
  // A guest that is slow to answer is not lost: it speaks again by itself after a while.
  await live.agent
    .awake(within(new AbortController().signal, WAKE_TIMEOUT_MS, "waking the guest"))
    .then(() => readyTimeoutMs(record.config) > 0 && context.inside.started("resume", 0))
    .catch((error: unknown) => {
      deps.log.warn(
        { machine: record.id, reason: messageOf(error) },
        "the guest does not answer after a suspend that was given up",
      );
    });
  if (signal.aborted) return { outcome: "capture_cancelled", patch: { capturing: null }, details: { reason } };
  const stateReason = `the last suspend failed: ${reason}`;
  deps.log.warn({ machine: record.id, reason }, "a suspend failed; the machine goes on");
  return { outcome: "capture_failed", patch: { capturing: null, stateReason }, details: { reason } };
}
