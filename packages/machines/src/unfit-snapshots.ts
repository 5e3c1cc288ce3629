/** Snapshots of sleeping machines that this platform would drop, because it is not what took them. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isHostTrouble } from "@hibernaut/lib/absence";
import { type FittingPorts, fittingSnapshot } from "./effects/fitting.ts";

/** How many machines a message names before it only counts the others. */
const NAMED = 10;

/** Reasons for which a snapshot is lost already, whatever the platform does: its files, or what they contain. */
const LOST = /^(snapshot_missing|snapshot_corrupt|secrets_changed)\b/;

/** A sleeping machine whose next start would be cold. */
export interface Unfit {
  machine: Pick<MachineRecord, "id" | "app" | "name">;
  /** A stable word, a colon and details. */
  reason: string;
}

/** Returns the machines whose snapshots are whole, and do not fit this platform. Changes nothing. */
export async function unfitSnapshots(machines: readonly MachineRecord[], ports: FittingPorts): Promise<Unfit[]> {
  const unfit: Unfit[] = [];
  for (const machine of machines) {
    if (machine.snapshot === null) continue;
    // One that the host cannot read is not dropped: its start says so, and keeps it.
    const found = await fittingSnapshot(machine, machine.snapshot, ports).catch((error: unknown) => {
      if (!isHostTrouble(error)) throw error;
    });
    if (typeof found === "string" && !LOST.test(found)) unfit.push({ machine, reason: found });
  }
  return unfit;
}

/** Names the machines and says why: `shop/web (3f9c01ab22de41): cpu_model_changed: ...`. */
export function unfitText(unfit: readonly Unfit[]): string {
  const named = unfit
    .slice(0, NAMED)
    .map(({ machine: { app, name, id }, reason }) => `${app}/${name} (${id}): ${reason}`);
  const more = unfit.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** The platform does not start, because it would drop snapshots and nobody said that it may. */
export function droppingRefusal(unfit: readonly Unfit[]): HibernautError {
  const many = unfit.length === 1 ? "1 sleeping machine its memory" : `${unfit.length} sleeping machines their memory`;
  return new HibernautError(
    "failed_precondition",
    `This start would cost ${many}. ${unfitText(unfit)}. Undo what has changed since and start the platform again, or give the memory up: \`hibernaut serve --drop-snapshots\`.`,
    { machines: unfit.map(({ machine: { id }, reason }) => ({ machine_id: id, reason })) },
  );
}
