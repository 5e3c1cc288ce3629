/** Copying a running machine, for a backup or a fork: its guest is paused for a moment, and runs on. It is never ended. */
import { readyTimeoutMs } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { DiskCopy, KeptDisks } from "@hibernaut/hypervisor";
import { never, within } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import type { CopyHaste } from "@hibernaut/lib/disk-files";
import { messageOf } from "@hibernaut/lib/text";
import type { PausedMemory } from "../decide/backed-up.ts";
import type { CopyPurpose } from "../file-copier.ts";
import type { LiveGuest } from "../guest.ts";
import { quiesce } from "./capture.ts";
import { type EffectPorts, originOf } from "./ports.ts";

const WAKE_TIMEOUT_MS = 10_000;

/** Copies files of the data directory. */
export interface CopyTarget {
  readonly purpose: CopyPurpose;
  /** Where the copy of a file of the data directory is put, as an absolute path. */
  pathOf(file: string): string;
  /** Whether a copy takes a moment, whatever the file's size. */
  clones(): Promise<boolean>;
  /** Copies files to new places. Rejects when aborted, once nothing is being written any more. */
  copy(files: readonly DiskCopy[], signal: AbortSignal, haste?: CopyHaste): Promise<void>;
}

interface CopyPausedInput {
  record: MachineRecord;
  /** The name of the snapshot that the copy gets. */
  generation: string;
  /** Why the memory is not copied; undefined when it is. */
  withoutMemory: string | undefined;
  /** Whether a copy without the memory is of no use: a guest that does not get ready is then left as it is. */
  needsMemory: boolean;
  /** Whether others wait for the copy. */
  hurried: boolean;
  /** Whether disks may be kept, so that the guest runs while they are copied. */
  keeps: boolean;
  target: CopyTarget;
}

/** What was copied, and for how many milliseconds the guest was paused. */
export interface PausedCopy {
  memory: PausedMemory;
  pausedMs: number;
}

/**
 * Copies the machine's disks and, unless something speaks against it, its memory, all as of one moment. The guest is paused while
 * its memory is copied. Where disks can be neither cloned nor kept, it is paused while they are, too. It runs
 * on in the same VMM, whatever happens: nothing in the machine's own directory says that there was a snapshot, so it
 * cannot be resumed twice. A platform that dies meanwhile leaves a paused guest, which the next one wakes.
 */
export async function copyPaused(
  { record, generation, withoutMemory, needsMemory, hurried, keeps, target }: CopyPausedInput,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<PausedCopy> {
  const { live } = ports.guest;
  if (live === undefined) throw new Error("there is no guest to copy");
  const paths = ports.files.paths(record.id);
  const disks = await ports.volumes.disks(record.config.mounts, { grow: false, signal });
  const folder = target.pathOf(ports.snapshots.folderOf(record.id, generation));
  if (withoutMemory === undefined) await live.vmm.prepareCapture(signal, { durable: false });
  const limit = within(signal, ports.settings.suspendTimeoutMs, "getting the guest ready");
  // The host continues such a guest by itself as soon as it can, which may be in the middle of the copy.
  if ((await live.vmm.state()) !== "running")
    throw new HibernautError(
      "unavailable",
      `Machine ${record.id} cannot be copied: the host has paused it (${record.stateReason ?? "no reason is known"}). Free some space on the disk of the data directory, then ${target.purpose.verb} again.`,
      { machine_id: record.id },
    );
  let clockMs = Date.now();
  let began: number | undefined;
  let pausedMs = 0;
  let without = withoutMemory;
  let kept: KeptDisks | undefined;
  const clones = await target.clones();
  const placed = (from: string) => ({ from, to: target.pathOf(from) });
  const diskFiles = [paths.layer, ...disks.map(({ file }) => file)].map(placed);
  try {
    try {
      const { aheadMs } = await quiesce(record, live, ports, limit);
      clockMs = Date.now() + aheadMs;
    } catch (error) {
      signal.throwIfAborted();
      if (needsMemory) throw notReady(record, error);
      // Its disks are then as after a power cut, which its file systems are made for.
      without = `the guest was not ready: ${messageOf(error)}`;
    }
    began = performance.now();
    await live.vmm.pause();
    if (without === undefined) await ports.snapshots.captureCopy(folder, live.vmm, signal);
    if (!clones && keeps) kept = await keepDisks(live, diskFiles, ports, record);
    const memory = without === undefined ? [{ from: paths.memory, to: ports.snapshots.memoryOf(folder) }] : [];
    await target.copy([...memory, ...(kept === undefined ? diskFiles : [])], signal);
    if ((await live.vmm.state()) === "running") throw new Error("the guest ran on while it was copied");
  } catch (error) {
    await kept?.release();
    throw error;
  } finally {
    if (began !== undefined) pausedMs = Math.round(performance.now() - began);
    await runOn(record, live, { clockMs, paused: began !== undefined }, ports);
  }
  if (kept !== undefined) await copyKept(kept, diskFiles, { live, target, hurried }, signal);
  ports.machineLog.platform(
    `The machine was paused for ${pausedMs} ms while it was copied for ${target.purpose.name}.`,
  );
  if (without !== undefined) return { memory: { snapshot: null, reason: without }, pausedMs };
  const createdAt = new Date(clockMs).toISOString();
  const secrets = ports.secrets.version(record.app);
  const origin = originOf(record, ports, live.vmm.identity);
  const size = await ports.snapshots.describeCopy(folder, origin, { generation, createdAt, clockMs });
  return { memory: { snapshot: { generation, created_at: createdAt, size_bytes: size, secrets } }, pausedMs };
}

/** Undefined where the disks cannot be kept: the guest is then paused while they are copied. */
async function keepDisks(
  { vmm }: LiveGuest,
  files: readonly DiskCopy[],
  { log }: EffectPorts,
  { id: machine }: MachineRecord,
): Promise<KeptDisks | undefined> {
  try {
    return await vmm.keepDisks(files.map(({ from }) => from));
  } catch (error) {
    log.warn({ machine, reason: messageOf(error) }, "a machine is paused until its disks are copied");
    return undefined;
  }
}

/** Copies disks while their guest writes to them, and makes the copies what the disks were when the guest was paused. */
async function copyKept(
  kept: KeptDisks,
  files: readonly DiskCopy[],
  { live, target, hurried }: { live: LiveGuest; target: CopyTarget; hurried: boolean },
  signal: AbortSignal,
): Promise<void> {
  // Nobody waits for the copy of a machine that has ended: its next start does.
  const ended = new AbortController();
  const end = () => ended.abort(new Error("the guest ended while it was copied"));
  background(live.vmm.exited.then(end), "noticing the end of a guest that is copied");
  const limit = AbortSignal.any([signal, ended.signal, kept.lost]);
  try {
    await target.copy(files, limit, { hurried });
    await kept.complete(files, limit);
  } finally {
    await kept.release();
  }
}

function notReady({ id }: MachineRecord, error: unknown): HibernautError {
  const message = `Machine ${id} cannot be forked now: its guest did not get ready (${messageOf(error)}). It runs on as it was. Look at \`hibernaut logs ${id}\`, then try again.`;
  return new HibernautError("unavailable", message, { machine_id: id }, { cause: error });
}

/** Lets the guest run on. One that cannot is ended, so that its restart policy can act. */
async function runOn(
  record: MachineRecord,
  { vmm, agent }: LiveGuest,
  { clockMs, paused }: { clockMs: number; paused: boolean },
  { log, inside }: EffectPorts,
): Promise<void> {
  const { id: machine } = record;
  try {
    if (paused) await vmm.run();
  } catch (error) {
    log.error({ machine, reason: messageOf(error) }, "a guest was lost: it did not run on after it was copied");
    return await vmm.kill();
  }
  // A guest that is slow to answer is not lost: it runs on by itself after a while.
  const stoodMs = Date.now() - clockMs;
  await agent
    .awake(within(never(), WAKE_TIMEOUT_MS, "waking the guest"), paused ? { stoodMs } : {})
    .then(() => readyTimeoutMs(record.config) > 0 && inside.started("resume", 0))
    .catch((error: unknown) => {
      log.warn({ machine, reason: messageOf(error) }, "the guest does not answer after it was copied");
    });
}
