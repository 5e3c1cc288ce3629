/** Starting the machines that a drain suspended, once it is over, or that ran when they were backed up. */
import { isHibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { settled } from "../waiting.ts";

const ANNOUNCEMENTS = {
  drain: "starting the machines that a drain suspended",
  backup: "starting the machines that ran when they were backed up",
} as const;

/**
 * Starts every machine that a drain suspended, unless the settings let them sleep on, and settles when they rest. Each is marked in its record until its start
 * is stored, so that a platform that ends now has forgotten none. When the signal aborts, the rest stay marked.
 */
export async function startAgain(
  controllers: Pick<ControllerSet, "all" | "admission">,
  { settings, store, log }: Pick<MachineDependencies, "settings" | "store" | "log">,
  signal: AbortSignal,
): Promise<void> {
  // In a backup, the last event of a machine says so, and nothing has happened to it since.
  const asleepBy = (id: string) => (store.machines.events(id, 1)[0]?.details.by === "backup" ? "backup" : "drain");
  const queue: MachineController[] = [];
  for (const machine of controllers.all()) {
    if (settings.resumeOnBoot === "on" && machine.record.drained === true) queue.push(machine);
    else machine.note({ type: "drain_over" });
  }
  const causes = Map.groupBy(queue, ({ record }) => asleepBy(record.id));
  for (const [cause, { length }] of causes) log.info({ machines: length }, ANNOUNCEMENTS[cause]);
  /** Whether it was this that started the machine. */
  const startWithRoom = async (machine: MachineController, by: "drain" | "backup"): Promise<boolean> => {
    const { id } = machine.record;
    const onFull = (reason: string) => log.warn({ machine: id, reason }, `a machine waits for room after a ${by}`);
    for (;;) {
      await controllers.admission.room(machine.record, signal, onFull);
      // Something else may have started it since.
      if (machine.record.drained !== true) return false;
      try {
        machine.command({ type: "start", details: { by } });
        return true;
      } catch (error) {
        // Another one was faster.
        if (!isHibernautError(error, "host_full")) throw error;
      }
    }
  };
  const start = async (machine: MachineController) => {
    const by = asleepBy(machine.record.id);
    try {
      if (await startWithRoom(machine, by)) await settled(machine, signal);
    } catch (error) {
      const { id, state } = machine.record;
      if (!signal.aborted)
        log.warn({ machine: id, state, reason: messageOf(error) }, `a machine cannot be started after a ${by}`);
    }
  };
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) await start(next);
  };
  await Promise.all(Array.from({ length: settings.drainSuspends }, worker));
}
