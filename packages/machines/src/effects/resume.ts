/** Resuming a machine from its snapshot. */
import { servicePorts } from "@hibernaut/domain/config";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { type FailedCarryOver, type Vmm, VmmKilled } from "@hibernaut/hypervisor";
import { adviceFor, ifAbsent, isHostTrouble } from "@hibernaut/lib/absence";
import { within } from "@hibernaut/lib/async";
import { failureReason } from "@hibernaut/lib/exec";
import { messageOf } from "@hibernaut/lib/text";
import type { FittingSnapshot } from "@hibernaut/snapshots";
import type { Details } from "../decide/index.ts";
import { CONSUMED } from "../decide/notes.ts";
import { fittingSnapshot } from "./fitting.ts";
import { letRun } from "./let-run.ts";
import { requireOwned } from "./owned.ts";
import type { EffectPorts } from "./ports.ts";
import { specOf } from "./spec.ts";
import { damaged, readLimitMs } from "./whole.ts";

/** The reason of a cold start after a resume that neither platform nor guest lived to see the end of. */
const LOST = "resume_lost";

export type Resumed =
  | { kind: "warm" | "resume"; details: Details }
  /** The start must be cold. */
  | { kind: "cold"; reason: string };

/**
 * Resumes the snapshot if there is one that fits. One that does not is refused and discarded. Rejects with `unavailable` when
 * the host cannot, which says nothing about the snapshot.
 */
export async function resume(record: MachineRecord, ports: EffectPorts, signal: AbortSignal): Promise<Resumed> {
  return resumeSnapshot(record, ports, signal).catch((error: unknown) => {
    if (!isHostTrouble(error) || isHibernautError(error)) throw error;
    throw new HibernautError(
      "unavailable",
      `The host cannot resume machine ${record.id} now: ${messageOf(error)}. Its memory is kept. ${adviceFor(error)} Then start the machine again; to give its memory up, stop it.`,
      {},
      { cause: error },
    );
  });
}

async function resumeSnapshot(record: MachineRecord, ports: EffectPorts, signal: AbortSignal): Promise<Resumed> {
  const { snapshots, note, log } = ports;
  if (record.snapshot === null)
    return { kind: "cold", reason: record.coldReason === CONSUMED ? LOST : record.coldReason };
  const { generation } = record.snapshot;
  const refuse = async (reason: string, carryOver?: FailedCarryOver): Promise<Resumed> => {
    note({ type: "snapshot_refused", reason, ...(carryOver !== undefined && { carryOver }) });
    await snapshots.discard(record.id, generation);
    return { kind: "cold", reason };
  };
  if (record.newborn === true) await ports.files.seeds.finish(record.id, generation);
  const checking = performance.now();
  const snapshot = await fittingSnapshot(record, record.snapshot, ports);
  if (typeof snapshot === "string") return refuse(snapshot);
  const damage = await damaged(record, snapshot, ports, signal);
  if (damage !== undefined) return refuse(damage);
  const progress = { consumed: false };
  try {
    const borrowed = await stage(record, generation, ports, signal);
    const limit = within(signal, ports.settings.resumeTimeoutMs, "the resume");
    const vmm = await load({ record, snapshot, checking, borrowed }, ports, limit);
    if (typeof vmm === "string") return await refuse(vmm);
    const details = await run(vmm, { record, snapshot, createdAt: record.snapshot.created_at, progress }, ports, {
      limit,
      signal,
    });
    return { kind: "resume", details };
  } catch (error) {
    const killed = !progress.consumed && (error instanceof VmmKilled || (await ports.guest.wasKilled()));
    const failure = await ports.guest.kill();
    // QEMU that cannot even be started (no memory, a port that is taken), or was killed before its guest ran, says
    // nothing about the snapshot: it is kept for the next try, and a cold start now would fail the same way. Neither does
    // a host that cannot read a file.
    if (signal.aborted || isHibernautError(error, "unavailable") || isHostTrouble(error)) throw error;
    const why = failure ?? messageOf(error);
    if (killed) throw new VmmKilled(why);
    const reason = `resume_failed: ${why}`;
    log.warn({ machine: record.id, reason }, "a resume failed; starting cold");
    // What a fork does not take has to do with its image, not with QEMU.
    return refuse(reason, record.newborn === true ? undefined : await failedCarryOver(snapshot, ports));
  }
}

/**
 * After a resume that failed: the two versions, if the hypervisor is not the one that took the snapshot. It is told
 * first, so that no other machine tries the same.
 */
async function failedCarryOver(
  { devices }: FittingSnapshot,
  { hypervisor, carryOvers, log }: EffectPorts,
): Promise<FailedCarryOver | undefined> {
  const pair = { from: devices.takenBy.version, to: hypervisor.identity().version };
  if (pair.from === pair.to) return undefined;
  log.warn({ ...pair }, "snapshots of other versions of QEMU are refused until it is upgraded again");
  await carryOvers.failed(pair).catch((error: unknown) => {
    log.warn({ ...pair, reason: messageOf(error) }, "this cannot be stored, and will be tried again after a restart");
  });
  return pair;
}

interface RunInput {
  record: MachineRecord;
  snapshot: FittingSnapshot;
  createdAt: string;
  /** Says how far the resume came if it fails. */
  progress: { consumed: boolean };
}

/** Lets the loaded guest run. The snapshot is consumed first. */
async function run(
  vmm: Vmm,
  { record, snapshot, createdAt, progress }: RunInput,
  ports: EffectPorts,
  { limit, signal }: { limit: AbortSignal; signal: AbortSignal },
): Promise<Details> {
  const { guest, note, steps } = ports;
  const { agent } = await steps.time("attach", () => guest.attach(vmm, servicePorts(record.config)));
  const { clockMs } = snapshot;
  await requireOwned(record.id, ports, signal);
  // From here on the snapshot is spent, whatever happens: that must be stored before the guest runs.
  const began = performance.now();
  note({ type: "snapshot_consumed" });
  steps.add("consume", began);
  progress.consumed = true;
  return letRun({ record, createdAt, clockMs, vmm, agent }, ports, { limit, signal });
}

/**
 * Starts QEMU while the files of the snapshot are checked, and loads them once they are found whole: a load may write to
 * the memory, which would then look damaged. Returns the flaw if the files have one.
 */
async function load(
  {
    record,
    snapshot,
    checking,
    borrowed,
  }: Pick<RunInput, "record" | "snapshot"> & {
    checking: number;
    borrowed: boolean;
  },
  ports: EffectPorts,
  limit: AbortSignal,
): Promise<Vmm | string> {
  const useless = new AbortController();
  const found = snapshot.files.flaw();
  const checked = whole(found);
  checked.catch(() => {}); // QEMU may not have started yet, or never
  const loaded = restore({ record, snapshot, borrowed }, ports, {
    checked,
    limit: AbortSignal.any([limit, useless.signal]),
  });
  loaded.catch(() => {}); // a flaw, if there is one, explains it better
  const end = async (why: unknown) => {
    useless.abort(why);
    await loaded.then(
      (vmm) => vmm.kill(),
      () => {},
    );
  };
  const flaw = await found.catch(async (error: unknown) => {
    await end(error);
    throw error;
  });
  ports.steps.add("check", checking);
  if (flaw === undefined) return loaded;
  await end(new Error(flaw));
  return flaw;
}

/** Resolves when no flaw was found, and rejects with the one that was. */
async function whole(found: Promise<string | undefined>): Promise<void> {
  const flaw = await found;
  if (flaw !== undefined) throw new Error(flaw);
}

/**
 * Puts the memory where the VMM maps it. Returns whether others have it, too, so that the VMM may only read it. Where it has to
 * write, it gets a copy: that has no part in the time that a resume may take, and says nothing about the snapshot when it fails.
 */
async function stage(
  record: MachineRecord,
  generation: string,
  { files, snapshots, hypervisor, steps }: EffectPorts,
  signal: AbortSignal,
): Promise<boolean> {
  await files.prepare(record.id);
  // One that is missing is found, and told, by the check.
  const { shared } = await snapshots.stage(record.id, generation).catch(ifAbsent({ shared: false }));
  if (!shared || (await hypervisor.borrows())) return shared;
  const limit = within(signal, readLimitMs(record), "copying the memory");
  await steps
    .time("copy", () => snapshots.stageCopy(record.id, limit))
    .catch((error: unknown) => {
      signal.throwIfAborted();
      throw new HibernautError(
        "unavailable",
        `The memory of machine ${record.id}, which others have, too, could not be copied: ${failureReason(error)}. It is kept: free some space on the disk of the data directory, then start the machine again.`,
        {},
        { cause: error },
      );
    });
  return false;
}

async function restore(
  { record, snapshot: { devices }, borrowed }: Pick<RunInput, "record" | "snapshot"> & { borrowed: boolean },
  ports: EffectPorts,
  { checked, limit }: { checked: Promise<void>; limit: AbortSignal },
): Promise<Vmm> {
  const { spec: own } = await specOf(record, { cold: false }, ports, limit);
  const spec = borrowed ? { ...own, borrowed } : own;
  const began = performance.now();
  const vmm = await ports.hypervisor.restore(spec, devices, limit, checked);
  const { listensAt = began } = vmm;
  ports.steps.add("qemu", began, listensAt);
  ports.steps.add("load", listensAt);
  return vmm;
}
