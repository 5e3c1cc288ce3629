/** Ending guests and deleting their state: stop, update, destroy, and a snapshot that is given up. */
import { setTimeout as delay } from "node:timers/promises";
import type { StopConfig } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { abortable, within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { Effect, EffectOutcome } from "../decide/index.ts";
import { stopOf } from "../environment.ts";
import type { LiveGuest, MachineGuest } from "../guest.ts";
import type { EffectPorts } from "./ports.ts";

/** From the end of the app to the end of the VMM: a flush of the disks and a power off. */
const POWER_OFF_MS = 10_000;
/** The same with volumes, of which every write counts: a memory full of them goes to a slow disk. */
const UNMOUNT_MS = 45_000;
/** A machine that is destroyed leaves its volumes in order, but may no longer take its time. */
const LAST_GRACE_MS = 5_000;

type HaltPorts = Pick<EffectPorts, "images" | "snapshots" | "files" | "guest" | "settings" | "finishRequests">;
type RemovePorts = HaltPorts & Pick<EffectPorts, "network" | "machineLog">;
interface HaltInput {
  record: MachineRecord;
}

/** Stops the guest and deletes its state: memory, snapshots and, at the next start, the writable layer. */
export async function halt(
  { record, effect }: HaltInput & { effect: Extract<Effect, { type: "halt" }> },
  ports: HaltPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  try {
    await endGuest({ record, destroying: false, ...effect }, ports, signal);
    await discardSnapshots({ machineId: record.id, memory: true }, ports);
    const { exit } = ports.guest;
    return { type: "halted", ...(exit !== undefined && { exit }) };
  } catch (error) {
    return { type: "halt_failed", reason: messageOf(error) };
  }
}

/** Clears the way for the stored update: ends what is running and deletes its state. */
export async function applyUpdate(
  { record }: HaltInput,
  ports: HaltPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  if (record.pending === null) return { type: "update_failed", reason: "no update was stored" };
  try {
    await endGuest({ record, destroying: false }, ports, signal);
    await discardSnapshots({ machineId: record.id, memory: true }, ports);
    return { type: "updated" };
  } catch (error) {
    return { type: "update_failed", reason: messageOf(error) };
  }
}

/** Deletes everything that the machine has on the host. */
export async function remove({ record }: HaltInput, ports: RemovePorts, signal: AbortSignal): Promise<EffectOutcome> {
  try {
    if (hasVolumes(record)) await endGuest({ record, destroying: true }, ports, signal);
    await ports.guest.kill();
    await ports.network.detach(record.id);
    await ports.machineLog.end();
    // Before the directory: the work on them in the background would find its files gone, or write more of them.
    await discardSnapshots({ machineId: record.id, memory: false }, ports);
    await ports.files.remove(record.id);
    return { type: "removed" };
  } catch (error) {
    ports.machineLog.reopen();
    return { type: "remove_failed", reason: messageOf(error) };
  }
}

/**
 * Deletes snapshots that no record names any more; with `memory`, also the memory, and ends the kept VMM of it first. What
 * cannot be deleted stays, and is logged.
 */
export async function discardGivenUp(
  { machineId, memory, guest }: { machineId: string; memory: boolean; guest: Pick<MachineGuest, "kept" | "kill"> },
  ports: Pick<EffectPorts, "snapshots" | "files" | "log">,
): Promise<void> {
  try {
    if (memory && guest.kept !== undefined) await guest.kill();
    await discardSnapshots({ machineId, memory }, ports);
  } catch (error) {
    ports.log.warn({ machine: machineId, reason: messageOf(error) }, "old snapshots cannot be deleted");
  }
}

/** Removes all generations of the machine, and with `memory` also its memory file. Safe to repeat. */
async function discardSnapshots(
  { machineId, memory }: { machineId: string; memory: boolean },
  { snapshots, files }: Pick<EffectPorts, "snapshots" | "files">,
): Promise<void> {
  await snapshots.discardOthers(machineId, undefined);
  if (memory) await files.forgetMemory(machineId);
}

/** Rejects when something takes its place, which the guest is then left to. */
async function endGuest(
  { record, destroying, terms, hurried }: HaltInput & { destroying: boolean; terms?: StopConfig; hurried?: true },
  ports: HaltPorts,
  signal: AbortSignal,
): Promise<void> {
  const { live, exit } = ports.guest;
  // A suspended machine may have a kept VMM.
  if (live === undefined) return void (await ports.guest.kill());
  const image = await ports.images.get(record.imageDigest);
  // Nobody waits for a machine that is destroyed, and nobody who asks for SIGKILL wants to wait for requests.
  const atOnce = exit !== undefined || live.asked !== undefined;
  if (!(atOnce || destroying || hurried || terms?.signal === "SIGKILL"))
    await requestsEnd({ record, terms, live }, ports, signal);
  const { signal: number, graceMs: wanted } = stopOf(record.config, image?.config, terms);
  const graceMs = destroying ? Math.min(wanted, LAST_GRACE_MS) : wanted;
  const killAt = ask(live, { signal: number, graceMs });
  const endMs = (hasVolumes(record) ? UNMOUNT_MS : POWER_OFF_MS) * ports.settings.slowFactor;
  const tooLong = delay(Math.max(0, killAt + endMs - performance.now()), undefined, { ref: false });
  await abortable(Promise.race([live.vmm.exited, tooLong]), signal);
  await ports.guest.kill();
}

/** Asks the app to exit, unless it was asked for the same. Returns when it is killed: never later than a stop before this said. */
function ask(live: LiveGuest, { signal, graceMs }: { signal: number; graceMs: number }): number {
  const now = performance.now();
  const { asked } = live;
  const killAt = Math.min(now + graceMs, asked?.killAt ?? Number.POSITIVE_INFINITY);
  if (signal === asked?.signal && killAt === asked.killAt) return killAt;
  live.agent.stop(signal, Math.max(0, Math.round(killAt - now)));
  live.asked = { signal, killAt };
  return killAt;
}

/** Open requests get their time, and no more of it than the app does in a stop that says how long that is. */
async function requestsEnd(
  { record, terms: { timeout } = {}, live }: HaltInput & { terms: StopConfig | undefined; live: LiveGuest },
  { finishRequests }: HaltPorts,
  signal: AbortSignal,
): Promise<void> {
  const now = performance.now();
  const { requests, until } = live.finishing ?? {
    requests: finishRequests?.(record.id) ?? Promise.resolve(),
    until: Number.POSITIVE_INFINITY,
  };
  const sooner = timeout === undefined ? until : Math.min(until, now + timeout * 1000);
  live.finishing = { requests, until: sooner };
  const limit = Number.isFinite(sooner) ? within(signal, Math.max(0, sooner - now), "finishing requests") : signal;
  await abortable(requests, limit).catch(() => {});
  signal.throwIfAborted();
}

function hasVolumes({ config }: MachineRecord): boolean {
  return (config.mounts ?? []).length > 0;
}
