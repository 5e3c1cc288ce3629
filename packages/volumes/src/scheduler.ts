/** Takes the snapshots of volumes that are due, one after the other. */
import { setTimeout as delay } from "node:timers/promises";
import type { SnapshotSchedule, VolumeRecord } from "@hibernaut/domain/volume";
import { messageOf } from "@hibernaut/lib/text";
import type { VolumeStore } from "@hibernaut/store";
import { afterSnapshot, afterTrouble, isUnchanged, scheduleStep } from "./schedule.ts";
import type { VolumeSnapshots } from "./snapshots.ts";

/** Between two looks at what is due, in milliseconds. The first look waits as long: a start has better things to do. */
const LOOK_MS = 60_000;

interface SchedulerOptions {
  store: Pick<VolumeStore, "list" | "get" | "update" | "getSnapshot">;
  snapshots: Pick<VolumeSnapshots, "createUnless" | "expire">;
  /** How often each volume is due, in milliseconds. */
  intervalMs: number;
  /** Whether the volume is being moved to another host, which takes its snapshots from then on. */
  isHeld(volumeId: string): boolean;
  clock(): Date;
  log: {
    info(fields: Record<string, unknown>, message: string): void;
    warn(fields: Record<string, unknown>, message: string): void;
  };
}

export class SnapshotScheduler {
  readonly #options: SchedulerOptions;
  /** What is being copied, by volume. */
  readonly #current = new Map<string, AbortController>();

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** Looks once a minute. Returns a function that ends that, and what is being copied. */
  start(): () => Promise<void> {
    const end = new AbortController();
    const work = this.#repeat(end.signal);
    return () => {
      end.abort(new Error("the platform is shutting down"));
      return work;
    };
  }

  /** A machine is about to start with the volume: it must not wait for a copy that nobody requested. */
  giveWay(volumeId: string): void {
    this.#current.get(volumeId)?.abort(new Error("its machine was started meanwhile"));
  }

  /** Takes all snapshots that are due. Rejects when aborted. */
  async look(signal: AbortSignal): Promise<void> {
    const { store, clock, intervalMs, isHeld } = this.#options;
    for (const { id } of store.list()) {
      signal.throwIfAborted();
      const volume = store.get(id);
      if (volume === undefined || isHeld(id)) continue;
      const step = scheduleStep(volume, { now: clock().getTime(), intervalMs });
      if (step.kind === "take") await this.#take(volume, signal);
    }
  }

  async #repeat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(LOOK_MS, undefined, { signal, ref: false })
        .then(() => this.look(signal))
        .catch((error: unknown) => {
          if (!signal.aborted) this.#options.log.warn({ reason: messageOf(error) }, "scheduled snapshots failed");
        });
    }
  }

  async #take(volume: VolumeRecord, signal: AbortSignal): Promise<void> {
    const { store, snapshots, clock, log } = this.#options;
    const { id, app } = volume;
    const giveWay = new AbortController();
    this.#current.set(id, giveWay);
    const began = volume.schedule as SnapshotSchedule;
    try {
      const exists = (snapshot: string) => store.getSnapshot(snapshot)?.state === "created";
      const limit = AbortSignal.any([signal, giveWay.signal]);
      const taken = await snapshots.createUnless(volume, (disk) => isUnchanged(began, disk, exists), limit);
      this.#update(id, (schedule) => afterSnapshot(schedule, clock(), taken));
      if (taken !== undefined) log.info({ volume: id, app, snapshot: taken.id }, "a scheduled snapshot was taken");
      await snapshots.expire(volume);
    } catch (error) {
      signal.throwIfAborted();
      const reason = messageOf(error);
      this.#update(id, (schedule) => afterTrouble(schedule, clock(), reason));
      if (began.trouble?.reason !== reason)
        log.warn({ volume: id, app, reason }, "a scheduled snapshot could not be taken; trying again later");
    } finally {
      this.#current.delete(id);
    }
  }

  /** Changes the schedule as it is now, unless the volume or its schedule is gone. */
  #update(id: string, change: (schedule: SnapshotSchedule) => SnapshotSchedule): void {
    const { store } = this.#options;
    const volume = store.get(id);
    const schedule = volume?.schedule ?? null;
    if (volume !== undefined && schedule !== null) store.update({ ...volume, schedule: change(schedule) });
  }
}
