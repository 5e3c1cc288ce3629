/** Suspending a machine: its complete state goes to disk, then its VMM ends. */
import { readyTimeoutMs, swapMbOf } from "@hibernaut/domain/config";
import type { MachineRecord, SnapshotRecord } from "@hibernaut/domain/machine";
import { abortable, never, within } from "@hibernaut/lib/async";
import { insist } from "@hibernaut/lib/insist";
import { messageOf } from "@hibernaut/lib/text";
import type { EffectOutcome } from "../decide/index.ts";
import type { LiveGuest } from "../guest.ts";
import { keepWarmMs, POOL_KEEP_WARM_MS } from "../warm/rules.ts";
import { getReady } from "./hooks.ts";
import { type EffectPorts, originOf } from "./ports.ts";
import { unlessHeld } from "./recover.ts";

/** A program that requested the suspend itself should get its reply before it is paused. */
const REPLY_TIMEOUT_MS = 1_000;

interface CaptureInput {
  record: MachineRecord;
  generation: string;
}

/** Publishes the generation, and ends the guest or keeps it paused. If that fails, or is cancelled, the same guest keeps running. */
export async function capture(input: CaptureInput, ports: EffectPorts, signal: AbortSignal): Promise<EffectOutcome> {
  const { live } = ports.guest;
  if (live === undefined) return { type: "lost", reason: "there is no guest to suspend" };
  const began = performance.now();
  try {
    // A large memory takes its time, which the guest does not notice: only the rest counts against the limit.
    await ports.steps.time("copy", () => live.vmm.prepareCapture(signal));
  } catch (error) {
    // The guest runs, and knows of nothing: there is nothing to take back, unless its VMM has ended.
    if (await ports.guest.wasKilled()) return turnBack(input, messageOf(error), ports, signal);
    return notCaptured(input, messageOf(error), ports, signal);
  }
  try {
    const limit = within(signal, ports.settings.suspendTimeoutMs, "the suspend");
    const { aheadMs, unready } = await quiesce(input.record, live, ports, limit);
    const clockMs = Date.now() + aheadMs;
    await ports.steps.time("pause", () => live.vmm.pause());
    const paused = performance.now();
    const published = await publish(input, live, { ports, clockMs, limit });
    await ports.steps.time("leave", () => leave(input, clockMs, ports));
    // Secrets that changed meanwhile leave this machine as it is, as they would have while it ran.
    const snapshot = { ...published, secrets: ports.secrets.version(input.record.app) };
    const details = {
      duration_ms: Math.round(performance.now() - began),
      frozen_ms: Math.round(performance.now() - paused),
      ...(unready !== undefined && { unready }),
    };
    return { type: "captured", snapshot, details };
  } catch (error) {
    return turnBack(input, messageOf(error), ports, signal);
  }
}

/** Gets the guest ready to be paused. Returns by how much its clock is ahead, and why the app was not ready, if so. */
export async function quiesce(
  record: MachineRecord,
  { vmm, agent }: LiveGuest,
  ports: EffectPorts,
  limit: AbortSignal,
): Promise<{ aheadMs: number; unready: string | undefined }> {
  const { settings, steps } = ports;
  if ((await vmm.state()) !== "running") throw new Error("the guest is paused; see its state_reason");
  const unready = await steps.time("prepare", async () => {
    await ports.inside.repliesSent(within(limit, REPLY_TIMEOUT_MS, "the reply")).catch(() => limit.throwIfAborted());
    const timeoutMs = readyTimeoutMs(record.config);
    return timeoutMs > 0 ? getReady({ timeoutMs }, ports, limit) : undefined;
  });
  if (unready !== undefined) ports.log.warn({ machine: record.id, reason: unready }, "suspending anyway");
  const flushed = within(limit, settings.flushTimeoutMs, "flushing the guest's disks");
  const aheadMs = await steps.time("quiesce", () => agent.quiesce(flushed));
  if (ports.guest.exit !== undefined) throw new Error("the app ended meanwhile");
  return { aheadMs, unready };
}

/** Writes the state of the paused guest to disk. When this settles, the snapshot survives a power cut. */
async function publish(
  { record, generation }: CaptureInput,
  { vmm }: LiveGuest,
  { ports, clockMs, limit }: { ports: EffectPorts; clockMs: number; limit: AbortSignal },
): Promise<SnapshotRecord> {
  const { snapshots, steps } = ports;
  const draft = await steps.time("save", async () => {
    const begun = await snapshots.draft(record.id, generation);
    await vmm.capture(begun.devices, limit);
    return begun;
  });
  // QEMU has flushed it when it paused the guest. Nothing else would notice that this failed.
  if (swapMbOf(record.config) > 0) await steps.time("flush", () => abortable(ports.files.flushLayer(record.id), limit));
  // The last moment to turn back: once the generation is published, the guest must not run on.
  limit.throwIfAborted();
  const createdAt = new Date().toISOString();
  const origin = originOf(record, ports, vmm.identity);
  const size = await steps.time("publish", () => snapshots.publish(draft, origin, { createdAt, clockMs }));
  return { generation, created_at: createdAt, size_bytes: size };
}

/**
 * The snapshot is all that the machine needs from now on. Its VMM may stay, paused, as a cache of it. One that was killed and
 * does not end is no reason to give the snapshot up: it is in the way of the next start only.
 */
async function leave({ record, generation }: CaptureInput, clockMs: number, ports: EffectPorts): Promise<void> {
  const { guest, settings, warm, log } = ports;
  const ms = record.pooled === true ? POOL_KEEP_WARM_MS : keepWarmMs(record.config, settings.keepWarmS);
  // One of which that is not known is not kept.
  const usage = ms > 0 && warm.open ? await guest.live?.vmm.usage().catch(() => undefined) : undefined;
  // Nobody has asked for a machine of a pool yet, and those that were in use come first.
  if (usage === undefined || (record.pooled === true && usage.anonymousBytes > warm.freeBytes)) {
    await unlessHeld(guest.kill(), log);
    return;
  }
  guest.keep({ generation, clockMs });
  warm.add(record.id, { ms, bytes: usage.anonymousBytes });
}

/** Lets the same guest run on. The generation goes first: it must never be found next to a guest that ran on. */
async function turnBack(
  { record, generation }: CaptureInput,
  reason: string,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const { snapshots, guest, inside, settings, log } = ports;
  const { live } = guest;
  try {
    await insist(() => snapshots.discard(record.id, generation), settings.suspendTimeoutMs);
    if (live === undefined) throw new Error("the guest is gone");
    await live.vmm.run();
  } catch (error) {
    const why = (await guest.kill()) ?? `${reason}; ${messageOf(error)}`;
    log.warn({ machine: record.id, reason: why }, "a guest was lost: it did not run on after a failed suspend");
    return { type: "lost", reason: why };
  }
  // A guest that is slow to answer is not lost: it speaks again by itself after a while.
  await live.agent
    .awake(within(never(), settings.wakeTimeoutMs, "waking the guest"))
    .then(() => readyTimeoutMs(record.config) > 0 && inside.started("resume", 0))
    .catch((error: unknown) => {
      log.warn({ machine: record.id, reason: messageOf(error) }, "the guest does not answer after a failed suspend");
    });
  return notCaptured({ record }, reason, ports, signal);
}

/** The guest runs as before. */
function notCaptured(
  { record }: Pick<CaptureInput, "record">,
  reason: string,
  { log }: Pick<EffectPorts, "log">,
  signal: AbortSignal,
): EffectOutcome {
  if (signal.aborted) return { type: "capture_cancelled", reason };
  log.warn({ machine: record.id, reason }, "a suspend failed; the machine keeps running");
  return { type: "capture_failed", reason };
}
