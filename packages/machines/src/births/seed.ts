/** Taking the state of a machine as a seed: all of it as of one moment, while the machine continues as it was. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { guestSize } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord, Origin } from "@hibernaut/domain/machine";
import { FORKS_PROTOCOL } from "@hibernaut/guest";
import { ifAbsent } from "@hibernaut/lib/absence";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import type { Semaphore } from "@hibernaut/lib/semaphore";
import type { MachineDependencies } from "../dependencies.ts";
import { eligibilityOf, protocolOf } from "../eligibility.ts";
import type { MachineCopies } from "../resources/machine-copies.ts";

/** A machine's state, from which others can be born. */
export interface Seed {
  /** Where its files are. */
  folder: string;
  /** The machine as it was, asleep with the snapshot that the seed has. */
  record: MachineRecord;
  origin: Origin;
}

type SeedPorts = Pick<MachineDependencies, "settings" | "bundles" | "snapshots">;

/** Throws `failed_precondition` when no machine can be born from this one, with what to do. */
export function requireSeed(record: MachineRecord, ports: Pick<SeedPorts, "settings" | "bundles">): void {
  const why = refusal(record, ports);
  if (why === undefined) return;
  throw new HibernautError("failed_precondition", `Machine ${record.id} cannot be forked: ${why}`, {
    machine_id: record.id,
    state: record.state,
  });
}

function refusal(record: MachineRecord, ports: Pick<SeedPorts, "settings" | "bundles">): string | undefined {
  const { config, state, id } = record;
  if ((config.mounts ?? []).length > 0)
    return "it has volumes, which cannot belong to two machines. Fork a machine without volumes, or restore a snapshot of the volume into a new machine.";
  if (record.releaseCommand !== undefined) return "it runs a release command, and is temporary.";
  if (state !== "running" && state !== "suspended")
    return `it is ${state}, so that it has no memory. Start it first: \`hibernaut machine start ${id}\`.`;
  if (protocolOf(record, ports) < FORKS_PROTOCOL)
    return `its guest bundle is too old. Move it to the current one first, which restarts it: \`hibernaut machine update ${id} --yes\`.`;
  const { reasons } = eligibilityOf(record, ports);
  return reasons.length === 0 ? undefined : `it cannot be suspended: ${reasons.join("; ")}.`;
}

/** Rejects with `failed_precondition` when the seed's memory is damaged. */
export async function requireWhole(
  { folder, record }: Pick<Seed, "folder" | "record">,
  { snapshots }: Pick<MachineDependencies, "snapshots">,
  signal: AbortSignal,
): Promise<void> {
  const flaw = await snapshots.flawToInherit(generationIn(folder, record), signal);
  if (flaw === undefined) return;
  const message = `No machine can be made with the memory of machine ${record.id}: ${flaw}. Make a new template, or fork the machine while it runs.`;
  throw new HibernautError("failed_precondition", message, { machine_id: record.id });
}

interface TakeInput {
  machineId: string;
  /** Names the draft of the seed. */
  id: string;
  origin: Origin;
}

/**
 * Takes the state of a running or sleeping machine into the draft of a seed. A running one is paused for the time of the
 * copy. Rejects as {@link requireSeed} does, and with `unavailable` or `aborted` when it cannot be copied now; then there is
 * no draft, and the machine is as it was.
 */
export async function takeSeed(
  { machineId, id, origin }: TakeInput,
  {
    copies,
    copying,
    ports,
  }: {
    copies: Pick<MachineCopies, "copy">;
    copying: Semaphore;
    ports: SeedPorts & Pick<MachineDependencies, "files">;
  },
  signal: AbortSignal,
): Promise<Seed> {
  const files = ports.files.seeds;
  try {
    const copy = await copying.run(() => copies.copy(machineId, files.copierTo(id), signal), signal);
    if (copy === undefined) throw new HibernautError("not_found", `Machine ${machineId} was destroyed meanwhile.`);
    // It may have stopped since it was looked at.
    requireSeed({ ...copy.record, state: copy.record.snapshot === null ? "stopped" : "suspended" }, ports);
    const seed = { folder: files.draft(id), record: copy.record, origin };
    await requireWhole(seed, ports, signal);
    return seed;
  } catch (error) {
    await files.removeDraft(id);
    throw error;
  }
}

/** The directory of the generation that a seed has, or a machine that is born from it. */
export function generationIn(folder: string, { snapshot }: Pick<MachineRecord, "snapshot">): string {
  return join(folder, "snapshots", snapshot?.generation ?? "");
}

/**
 * What a machine takes of the disk at first that is born from the state in a directory, in bytes: a memory of its size, and a
 * copy of the writable layer.
 */
export async function bytesOf(folder: string, { config }: Pick<MachineRecord, "config">): Promise<number> {
  const layer = await stat(join(folder, "layer.ext4")).catch(ifAbsent({ blocks: 0 }));
  return guestSize(config).memoryMb * 1024 * 1024 + allocatedBytes(layer);
}
