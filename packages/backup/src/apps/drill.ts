/** A drill: the machines of a restored app are woken, and have to be healthy and have what they should have. */
import { DEFAULT_BACKUP_COMMAND_S } from "@hibernaut/domain/limits";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { messageOf } from "@hibernaut/lib/text";
import type { Resources, RestoredMachine } from "@hibernaut/machines";
import { runIn } from "./command.ts";
import { countOf, type DrillCount, type DrilledMachine, drillCount, isTried } from "./verdict.ts";

/** How long a machine may take to be healthy, in milliseconds: a cold start of a large app, and its checks, on a busy host. */
const HEALTHY_MS = 10 * 60_000;

/** What drills need of machines. */
type DrillPorts = Pick<Resources, "machines" | "commands">;

/** What is tried. */
interface Drilled {
  app: string;
  machines: readonly RestoredMachine[];
  /** The machines as they were in the backup. */
  records: readonly MachineRecord[];
  /** What the drill before counted. */
  before: readonly DrillCount[];
}

/** Wakes one machine after the other. What is wrong with one is a finding, not an error. Rejects with the signal's reason. */
export async function tryMachines(
  { app, machines, records, before }: Drilled,
  ports: DrillPorts,
  signal: AbortSignal,
): Promise<{ machines: DrilledMachine[]; counts: DrillCount[] }> {
  const tried: DrilledMachine[] = [];
  const counts: DrillCount[] = [];
  for (const machine of machines) {
    const record = records.find(({ id }) => id === machine.from);
    if (record === undefined) continue;
    const found = await tryMachine(app, machine, record, ports, signal);
    tried.push(found);
    for (const count of record.config.backup?.counts ?? []) {
      if (found.health !== "healthy") {
        counts.push(drillCount(machine.name, count, "its machine is not healthy", before));
        continue;
      }
      const timeoutMs = DEFAULT_BACKUP_COMMAND_S * 1000;
      const told = { app, machine: machine.id, args: count.command, timeoutMs };
      const value = await runIn(ports.commands, told, signal).then(countOf, (error: unknown) => {
        signal.throwIfAborted();
        return messageOf(error);
      });
      counts.push(drillCount(machine.name, count, value, before));
    }
  }
  return { machines: tried, counts };
}

async function tryMachine(
  app: string,
  { id, name, from, withoutMemory }: RestoredMachine,
  record: MachineRecord,
  { machines }: Pick<DrillPorts, "machines">,
  signal: AbortSignal,
): Promise<DrilledMachine> {
  const known = { from, name, start: null };
  if (!isTried(record)) return { ...known, health: "stopped", tookMs: null, note: null };
  const began = performance.now();
  const tookMs = () => Math.round(performance.now() - began);
  try {
    machines.start(app, id);
    const { reached } = await machines.wait(app, id, ["healthy", "failed", "stopped"], {
      timeoutMs: HEALTHY_MS,
      signal,
    });
    const { record: now } = machines.get(app, id);
    const start = now.lastBoot?.kind ?? null;
    if (reached === "healthy") return { ...known, start, health: "healthy", tookMs: tookMs(), note: withoutMemory };
    return { ...known, start, health: "failed", tookMs: tookMs(), note: now.stateReason ?? `it is ${now.state}` };
  } catch (error) {
    signal.throwIfAborted();
    return { ...known, health: "failed", tookMs: tookMs(), note: messageOf(error) };
  }
}
