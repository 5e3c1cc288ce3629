/** Checks the snapshots of sleeping machines, one at a time, so that damage is found before a wake trips on it. */
import { setTimeout as delay } from "node:timers/promises";
import { isResting, type MachineRecord } from "@hibernaut/domain/machine";
import { messageOf } from "@hibernaut/lib/text";
import type { MachineController } from "./controller.ts";
import type { ControllerSet } from "./controller-set.ts";
import type { MachineDependencies } from "./dependencies.ts";

/** Between two looks at what is due, in milliseconds. The first look waits as long: a start has better things to read. */
const LOOK_MS = 60_000;
const HOUR_MS = 3_600_000;

type ScrubberPorts = Pick<MachineDependencies, "snapshots" | "settings" | "log" | "clock" | "files">;

export class Scrubber {
  readonly #ports: ScrubberPorts;
  readonly #controllers: Pick<ControllerSet, "all">;
  /** When each generation was checked last, in milliseconds since 1970. Only of machines that sleep. */
  #checked = new Map<string, number>();

  constructor(ports: ScrubberPorts, controllers: Pick<ControllerSet, "all">) {
    this.#ports = ports;
    this.#controllers = controllers;
  }

  /** Looks once a minute. Returns a function that ends that, and what is being read. */
  start(): () => Promise<void> {
    if (this.#ports.settings.scrubIntervalH === 0) return async () => {};
    const end = new AbortController();
    const work = this.#repeat(end.signal);
    return () => {
      end.abort();
      return work;
    };
  }

  /** Checks all snapshots that are due. Rejects when aborted. */
  async look(signal: AbortSignal): Promise<void> {
    const { snapshots, settings, clock, files } = this.#ports;
    const checked = new Map<string, number>();
    for (const controller of this.#controllers.all()) {
      const generation = sleepingWith(controller.record);
      // Its next start puts the files there.
      if (generation === undefined || (await files.seeds.isPending(controller.record.id, generation))) continue;
      const now = (clock?.() ?? new Date()).getTime();
      const verified = async () => (await snapshots.verifiedAt(controller.record.id, generation))?.getTime();
      const last = this.#checked.get(generation) ?? (await verified());
      const due = last === undefined || last > now || now - last >= settings.scrubIntervalH * HOUR_MS;
      if (due) await this.#check(controller, generation, signal);
      checked.set(generation, due ? now : last);
    }
    this.#checked = checked;
  }

  async #repeat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(LOOK_MS, undefined, { signal, ref: false })
        .then(() => this.look(signal))
        .catch((error: unknown) => {
          if (!signal.aborted) this.#ports.log.error({ reason: messageOf(error) }, "checking snapshots failed");
        });
    }
  }

  async #check(controller: MachineController, generation: string, signal: AbortSignal): Promise<void> {
    const { snapshots, settings, log } = this.#ports;
    const { id } = controller.record;
    const started = new AbortController();
    const unsubscribe = controller.subscribe((record) => {
      if (sleepingWith(record) !== generation) started.abort();
    });
    try {
      const limit = AbortSignal.any([signal, started.signal]);
      const damage = await snapshots.scrub(id, generation, { rate: settings.scrubRateMb * 1024 * 1024, signal: limit });
      if (damage === undefined || sleepingWith(controller.record) !== generation) return;
      log.warn({ machine: id, reason: damage }, "the snapshot of a sleeping machine is damaged, and is discarded");
      controller.dropSnapshot(damage);
    } catch (error) {
      signal.throwIfAborted();
      if (sleepingWith(controller.record) === generation)
        log.warn({ machine: id, reason: messageOf(error) }, "the snapshot of a sleeping machine cannot be checked");
    } finally {
      unsubscribe();
    }
  }
}

/** The generation of a machine that rests. */
function sleepingWith({ state, snapshot }: MachineRecord): string | undefined {
  return isResting(state) ? snapshot?.generation : undefined;
}
