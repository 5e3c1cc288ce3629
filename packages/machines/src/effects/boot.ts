/** Starting a machine: from its snapshot if there is one that fits, otherwise a cold start. */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { LastBoot, MachineRecord } from "@hibernaut/domain/machine";
import { VmmKilled } from "@hibernaut/hypervisor";
import { adviceFor, isPassing } from "@hibernaut/lib/absence";
import { within } from "@hibernaut/lib/async";
import { messageOf, withoutPeriod } from "@hibernaut/lib/text";
import type { Boot, BootEffect, EffectOutcome } from "../decide/index.ts";
import { CONSUMED } from "../decide/notes.ts";
import { becomeItself } from "./become.ts";
import { carriedFor } from "./carried.ts";
import { coldStart, startApp } from "./cold-start.ts";
import { tellOfWake } from "./let-run.ts";
import { NotOwned } from "./owned.ts";
import type { EffectPorts } from "./ports.ts";
import { untilReady } from "./ready.ts";
import { resume } from "./resume.ts";
import { imageOf } from "./spec.ts";
import { wakeKept } from "./wake-kept.ts";

interface BootInput {
  record: MachineRecord;
  effect: BootEffect;
}

/** Tells how the guest came up, as of now. */
type Booted = (kind: LastBoot["kind"], reason: string) => Boot;

/** Brings a guest up, or takes over the one that an earlier platform began to start. A guest that fails is ended. */
export async function boot(
  { record, effect }: BootInput,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const began = performance.now();
  const booted: Booted = (kind, reason) => {
    const unreachable = ports.guest.live?.reachability.why ?? null;
    const duration_ms = Math.round(performance.now() - began);
    const lastBoot = { kind, reason, at: new Date().toISOString(), duration_ms };
    return { lastBoot, unreachable, stateReason: unreachable };
  };
  try {
    if (ports.guest.live !== undefined) return await takeOverStart({ record, effect }, booted, ports, signal);
    await ports.hypervisor.requireEnded(record.id);
    const refusal = await ports.ownership?.verify(record.id, signal);
    if (refusal !== undefined) return { type: "start_refused", reason: refusal.message };
    await ports.steps.time("room", () => ports.admission.enter(record, signal));
    const resumed = (await wakeKept(record, ports, signal)) ?? (await resume(record, ports, signal));
    if (resumed.kind !== "cold")
      return { type: "started", boot: booted(resumed.kind, "snapshot"), details: resumed.details };
    const { restedSince } = effect;
    const input = { record, reason: resumed.reason, restedSince, booted };
    const queued = performance.now();
    const start = () => {
      ports.steps.add("slot", queued);
      return coldStart(input, ports, signal);
    };
    return await ports.bootSlots.run(start, signal);
  } catch (error) {
    const killed = !signal.aborted && (error instanceof VmmKilled || (await ports.guest.wasKilled()));
    // Whatever went wrong: if its VMM does not end, that is what has to be known.
    const reason = (await ports.guest.kill().catch(messageOf)) ?? reasonOf(error);
    if (error instanceof NotOwned) return { type: "start_refused", reason };
    if (!killed) return { type: isPassing(error) ? "start_hindered" : "start_failed", reason };
    const { attempt } = effect;
    ports.log.warn({ machine: record.id, reason, attempt }, "a guest was killed while it started");
    return { type: "start_killed", reason, start: effect };
  }
}

/** Errors of our own say what to do already. */
function reasonOf(error: unknown): string {
  const advice = isHibernautError(error) ? undefined : adviceFor(error);
  const what = messageOf(error);
  return advice === undefined ? what : `the host cannot start it: ${withoutPeriod(what)}. ${advice}`;
}

/** A start that an earlier platform process began: the guest is there, at whatever point it reached. */
async function takeOverStart(
  { record, effect: { restedSince } }: BootInput,
  booted: Booted,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const { live } = ports.guest;
  if (live === undefined) throw new Error("there is no guest to take over");
  const { bootTimeoutMs, resumeTimeoutMs } = ports.settings;
  const hello = await live.agent.hello(within(signal, bootTimeoutMs, "the boot"), { resync: true });
  const resumed = record.coldReason === CONSUMED;
  const now = () => (resumed ? booted("resume", "snapshot") : booted("cold", record.coldReason));
  if (hello.phase === "ended") {
    ports.guest.rememberExit(hello.exit);
    return { type: "app_ended", exit: hello.exit, boot: now() };
  }
  if (hello.phase === "waiting") {
    const secrets = ports.secrets.environment(record.app);
    const image = await imageOf(record, ports);
    return startApp({ record, image, secrets, restedSince: null, booted: now }, live, ports, signal);
  }
  const becoming = within(signal, resumeTimeoutMs, "becoming itself");
  const forkHooks = resumed && (await becomeItself(record, live.agent, ports, becoming));
  const waking = within(signal, resumeTimeoutMs, "setting the clock");
  const { hooks } = await live.agent.awake(waking, { carried: carriedFor(record, ports) });
  const sleptMs = restedSince === null ? 0 : Date.now() - Date.parse(restedSince);
  // Nobody knows whether the earlier platform came this far: better twice than never.
  if (resumed) await tellOfWake({ record, sleptMs, hooks, forkHooks }, ports, signal);
  else ports.inside.started("cold", sleptMs);
  return untilReady({ agent: live.agent, booted: now }, ports, signal);
}
