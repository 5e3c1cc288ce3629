/** Copies of machines, for backups and forks, each as of one moment, while the platform serves. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { inStateSince, isResting, type MachineRecord } from "@hibernaut/domain/machine";
import { KeptLost } from "@hibernaut/hypervisor";
import { ifAbsent, isThere } from "@hibernaut/lib/absence";
import { allocatedBytes, lackOfRoom } from "@hibernaut/lib/disk-files";
import { failureReason } from "@hibernaut/lib/exec";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import { type BackedUp, backedUp } from "../decide/backed-up.ts";
import type { MachineDependencies } from "../dependencies.ts";
import type { CopyTarget } from "../effects/copy-paused.ts";
import { eligibilityOf } from "../eligibility.ts";
import type { FileCopier, Lent } from "../file-copier.ts";
import { settled } from "../waiting.ts";

/**
 * How often a copy gives way to what is requested of its machine meanwhile, such as a wake. After that the copy is
 * finished first: a machine that is started and put to sleep all the time would otherwise never be in a backup.
 */
const GIVES_WAY = 3;

/** A machine that starts and ends more often than this while it is copied is in no state to go back to. */
const MOST_TRIES = 20;

/** A machine that was copied. */
export interface MachineCopy extends BackedUp {
  /** For how many milliseconds its guest was paused; 0 for a machine without one. */
  pausedMs: number;
  /** Why its memory is not in the copy although it was running; null when it is, or when there was none. */
  withoutMemory: string | null;
  /** The volumes whose disks were copied with it. */
  volumes: string[];
  /** Set if its files were lent. */
  lent?: Lent;
}

type CopiesPorts = Pick<
  MachineDependencies,
  "files" | "snapshots" | "volumes" | "settings" | "bundles" | "clock" | "log"
>;

/** Copies machines, one at a time, without ending or starting any. */
export class MachineCopies {
  readonly #ports: CopiesPorts;
  readonly #controllers: ControllerSet;

  constructor(ports: CopiesPorts, controllers: ControllerSet) {
    this.#ports = ports;
    this.#controllers = controllers;
  }

  /** Returns the ids of all machines, oldest first. */
  ids(): string[] {
    return this.#controllers.all().map(({ record }) => record.id);
  }

  /**
   * Copies a machine's files: of one that rests as they are, of one that runs as of a moment for which its guest is paused. Undefined when
   * the machine was destroyed meanwhile. Rejects with `unavailable` when there is no room, with `aborted` when the machine
   * does not come to rest, and with the signal's reason.
   */
  async copy(id: string, copier: FileCopier, signal: AbortSignal): Promise<MachineCopy | undefined> {
    let keeps = true;
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const controller = this.#controllers.get(id);
      if (controller === undefined) return undefined;
      await settled(controller, signal);
      // Its files may just be exchanged by a restore.
      if (controller.record.newborn === true) await controller.drained(signal);
      if (controller.record.state === "destroyed") return undefined;
      await this.#requireFiles(controller.record);
      await copier.discard(id);
      const patient = tries >= GIVES_WAY;
      const copied =
        controller.record.state === "running"
          ? await this.#copyRunning(controller, { copier, patient, keeps }, signal).catch((error: unknown) => {
              if (!(error instanceof KeptLost)) throw error;
              // One guest must not be able to end the backup of all: it is paused while its disks are copied.
              this.#ports.log.warn({ machine: id, reason: error.message }, "a machine is copied once more, and paused");
              keeps = false;
              return undefined;
            })
          : await this.#copyAtRest(controller, copier, signal);
      if (copied === undefined) {
        // The machine may be gone by now: nothing of it is left for a piece of something else.
        await copier.discard(id);
        continue;
      }
      try {
        await this.#copyLogs(id, copier, signal);
      } catch (error) {
        copied.lent?.release();
        throw error;
      }
      return copied;
    }
    throw new HibernautError(
      "aborted",
      `Machine ${id} kept starting and ending while it was copied. Stop it with \`hibernaut machine stop ${id}\`, or mend its app, then ${copier.purpose.verb} again.`,
      { machine_id: id },
    );
  }

  async #requireFiles({ id, snapshot }: MachineRecord): Promise<void> {
    if (!(await this.#ports.files.seeds.isPending(id, snapshot?.generation))) return;
    throw new HibernautError(
      "aborted",
      `The files of machine ${id} could not be put in their place when it was restored. Start it, which tries that again.`,
      { machine_id: id },
    );
  }

  /** Undefined when something else happened to the machine meanwhile. */
  async #copyRunning(
    controller: MachineController,
    { copier, patient, keeps }: { copier: FileCopier; patient: boolean; keeps: boolean },
    signal: AbortSignal,
  ): Promise<MachineCopy | undefined> {
    const { record } = controller;
    const { reasons } = eligibilityOf(record, this.#ports);
    const withoutMemory = reasons.length === 0 ? undefined : `it cannot be suspended: ${reasons.join("; ")}`;
    const memory = withoutMemory === undefined ? [this.#ports.files.paths(record.id).memory] : [];
    const disks = await this.#disksOf(record, signal);
    await this.#requireRoom(record, [...memory, ...disks], copier);
    const copied = await controller.copyPaused(
      { withoutMemory, needsMemory: copier.needsMemory, keeps, patient, target: targetOf(record, copier) },
      signal,
    );
    if (copied === undefined) return undefined;
    const now = this.#ports.clock?.() ?? new Date();
    return {
      ...backedUp(copied.record, copied.memory, now),
      pausedMs: copied.pausedMs,
      withoutMemory: copied.memory.snapshot === null ? copied.memory.reason : null,
      volumes: volumeIds(copied.record),
    };
  }

  /** The same. Nothing is held up: a wake, or anything else that is requested of the machine, ends the copy, or what was lent. */
  async #copyAtRest(
    controller: MachineController,
    copier: FileCopier,
    signal: AbortSignal,
  ): Promise<MachineCopy | undefined> {
    const { record } = controller;
    const changed = new AbortController();
    const release = controller.subscribe(() => {
      if (!sameFiles(record, controller.record)) changed.abort(new Error("the machine changed while it was copied"));
    });
    let lent: Lent | undefined;
    try {
      const limit = AbortSignal.any([signal, changed.signal]);
      const disks = await this.#disksOf(record, limit);
      const { snapshot } = record;
      const memory = snapshot === null ? [] : await this.#ports.snapshots.filesOf(record.id, snapshot.generation);
      const files = [...memory, ...disks];
      if (copier.lend !== undefined) for (const file of files) await copier.lend(file, limit);
      else {
        await this.#requireRoom(record, files, copier);
        await targetOf(record, copier).copy(
          files.map((from) => ({ from, to: copier.pathOf(from) })),
          limit,
        );
      }
      if (changed.signal.aborted || !sameFiles(record, controller.record)) return undefined;
      if (copier.lend !== undefined) lent = { changed, release };
      const copy = { record, event: undefined, pausedMs: 0, withoutMemory: null, volumes: volumeIds(record) };
      return { ...copy, ...(lent && { lent }) };
    } catch (error) {
      signal.throwIfAborted();
      if (changed.signal.aborted || !sameFiles(record, controller.record)) return undefined;
      throw error;
    } finally {
      if (lent === undefined) release();
    }
  }

  /** The writable layer, if there is one, and the volumes. */
  async #disksOf(record: MachineRecord, signal: AbortSignal): Promise<string[]> {
    const { files, volumes } = this.#ports;
    const disks = await volumes.disks(record.config.mounts, { grow: false, signal });
    const layer = (await files.hasLayer(record.id)) ? [files.paths(record.id).layer] : [];
    return [...layer, ...disks.map(({ file }) => file)];
  }

  /** What a restored machine can do without: logs, and which pages its last wake needed. They may grow meanwhile. */
  async #copyLogs(id: string, copier: FileCopier, signal: AbortSignal): Promise<void> {
    const { folder, logs, console } = this.#ports.files.paths(id);
    const segments = (await readdir(logs).catch(ifAbsent<string[]>([]))).map((name) => join(logs, name));
    for (const from of [...segments, console, join(folder, "hot-pages.json")]) {
      // A segment that was full is deleted, and a machine that never ran has no console.
      if (!(await isThere(from))) continue;
      await copier.copyFile(from, copier.pathOf(from), signal).catch((error: unknown) => {
        signal.throwIfAborted();
        this.#ports.log.warn({ machine: id, file: from, reason: failureReason(error) }, "a copy goes without a file");
      });
    }
  }

  /** Refused before the guest is paused for nothing. */
  async #requireRoom({ id }: MachineRecord, files: string[], copier: FileCopier): Promise<void> {
    if (await copier.clones()) return;
    // One that is gone belongs to a machine that has stopped meanwhile, so that the copy begins again.
    const sizes = await Promise.all(files.map((file) => stat(file).then(allocatedBytes, ifAbsent(0))));
    const lack = await lackOfRoom(
      copier.folder,
      sizes.reduce((sum, size) => sum + size, 0),
    );
    if (lack === undefined) return;
    throw noRoom(id, copier, `it needs ${lack.needed} MB, and ${lack.free} MB are free`);
  }
}

function targetOf({ id }: MachineRecord, copier: FileCopier): CopyTarget {
  return {
    purpose: copier.purpose,
    pathOf: (file) => copier.pathOf(file),
    clones: () => copier.clones(),
    async copy(files, signal, haste) {
      // All at once: the guest may be paused meanwhile. What fails first ends the others.
      const failed = new AbortController();
      const limit = AbortSignal.any([signal, failed.signal]);
      const copies = files.map(({ from, to }) =>
        copier.copyFile(from, to, limit, haste).catch((error: unknown) => {
          failed.abort(error);
          throw error;
        }),
      );
      await Promise.allSettled(copies);
      signal.throwIfAborted();
      if (failed.signal.aborted) throw noRoom(id, copier, failureReason(failed.signal.reason));
    },
  };
}

function noRoom(id: string, { folder, purpose }: FileCopier, why: string): HibernautError {
  return new HibernautError(
    "unavailable",
    `Machine ${id} cannot be copied to ${folder}: ${why}. Free some space on that disk, then ${purpose.verb} again.`,
    { machine_id: id },
  );
}

/** Whether nothing has happened to the machine that could have changed its files. */
function sameFiles(before: MachineRecord, now: MachineRecord): boolean {
  return (
    isResting(now.state) &&
    now.state === before.state &&
    inStateSince(now) === inStateSince(before) &&
    now.version === before.version &&
    now.snapshot?.generation === before.snapshot?.generation
  );
}

function volumeIds({ config }: MachineRecord): string[] {
  return (config.mounts ?? []).map(({ volume = "" }) => volume);
}
