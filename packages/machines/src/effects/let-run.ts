/** The end of every resume: a paused guest whose snapshot is consumed continues. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Details } from "../decide/index.ts";
import type { LiveGuest } from "../guest.ts";
import { becomeItself } from "./become.ts";
import { carriedFor } from "./carried.ts";
import { runHooks } from "./hooks.ts";
import { requireOwned } from "./owned.ts";
import type { EffectPorts } from "./ports.ts";

interface LetRunInput extends Pick<LiveGuest, "vmm" | "agent"> {
  record: MachineRecord;
  /** When the snapshot was taken, RFC 3339. */
  createdAt: string;
  /** The guest's clock when it was paused, in milliseconds since 1970, if that is known. */
  clockMs: number | undefined;
}

type WakePorts = Pick<EffectPorts, "guest" | "machineLog" | "inside" | "log" | "settings" | "steps">;

/**
 * Starts the guest's CPUs, tells a fork who it is, sets its clock and runs its hooks. Rejects when the guest does not answer
 * within `limit`, and with `NotOwned` when the host may not run it any more: between the look before and the first
 * instruction the whole platform may have been halted, longer than the host's lease. The caller then ends the guest.
 */
export async function letRun(
  { record, createdAt, clockMs, vmm, agent }: LetRunInput,
  ports: WakePorts & Pick<EffectPorts, "ownership" | "images" | "network" | "secrets" | "store">,
  { limit, signal }: { limit: AbortSignal; signal: AbortSignal },
): Promise<Details> {
  const { log, steps } = ports;
  const stoodMs = clockMs === undefined ? undefined : Date.now() - clockMs;
  // Sent at once: the agent reads it as soon as there is a CPU to read it, one round trip to the VMM earlier.
  const [{ hooks, forkHooks, clockOffMs }] = await steps.time("awake", () => {
    const running = vmm.run().then(() => requireOwned(record.id, ports, signal));
    const awake = async () => {
      const own = await becomeItself(record, agent, ports, limit);
      return { ...(await agent.awake(limit, { stoodMs, carried: carriedFor(record, ports) })), forkHooks: own };
    };
    return Promise.all([awake(), running]);
  });
  log.info({ machine: record.id, clockOffMs }, "the guest is awake");
  return tellOfWake({ record, sleptMs: Date.now() - Date.parse(createdAt), hooks, forkHooks }, ports, signal);
}

interface WakeInput {
  record: MachineRecord;
  sleptMs: number;
  /** Whether the image has any for after a resume. */
  hooks: boolean;
  /** Whether it has any for after a fork, if this is one. */
  forkHooks: boolean;
}

/** Tells the programs in a guest that is awake again, and runs its hooks. */
export async function tellOfWake(
  { record, sleptMs, hooks, forkHooks }: WakeInput,
  ports: WakePorts,
  signal: AbortSignal,
): Promise<Details> {
  const { inside, log, settings, steps } = ports;
  inside.started(record.newborn === true ? "fork" : "resume", sleptMs);
  const timeoutMs = settings.hookTimeoutMs;
  const run = async () => {
    const forked = forkHooks ? await runHooks({ kind: "post-fork", timeoutMs }, ports, signal) : undefined;
    const resumed = hooks ? await runHooks({ kind: "post-resume", timeoutMs }, ports, signal) : undefined;
    return [forked, resumed].filter((text) => text !== undefined).join("; ") || undefined;
  };
  const failed = hooks || forkHooks ? await steps.time("hooks", run) : undefined;
  if (failed !== undefined) log.warn({ machine: record.id, reason: failed }, "the machine keeps running anyway");
  return { slept_ms: sleptMs, ...(failed !== undefined && { hooks: failed }) };
}
