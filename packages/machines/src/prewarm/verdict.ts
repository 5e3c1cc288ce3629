/** When a prewarm is over: a pure rule. */
import type { Health } from "@hibernaut/domain/health";
import type { MachineRecord, MachineState, Prewarm } from "@hibernaut/domain/machine";
import { isKnownToCrash } from "../restart.ts";

type PrewarmVerdict =
  | { kind: "wait" }
  /** The new version works: take its snapshot. */
  | { kind: "sleep" }
  /** It ran and ended, as a job does: there is nothing to take a snapshot of. */
  | { kind: "ended" }
  | { kind: "failed"; reason: string };

/** States that end by themselves; a machine that crashed once is started again by its restart policy. */
const ON_ITS_WAY: ReadonlySet<MachineState> = new Set(["starting", "stopping", "suspending", "updating"]);

const WAIT: PrewarmVerdict = { kind: "wait" };

/** Judges a prewarm in progress. `late`: it has had all the time that it gets. */
export function prewarmVerdict(
  record: MachineRecord & { prewarm: Prewarm },
  health: Health,
  late: { afterS: number } | undefined,
): PrewarmVerdict {
  const { state, crash = null, stateReason, prewarm } = record;
  if (crash !== null && state !== "running" && isKnownToCrash(crash)) return { kind: "failed", reason: health.reason };
  if (state === "running") return judgeRunning(prewarm, health, late);
  if (state === "restarting" || ON_ITS_WAY.has(state)) return late ? tooLate(health.reason, late) : WAIT;
  if (state === "stopped" && crash === null && hasRun(record)) return { kind: "ended" };
  return { kind: "failed", reason: stateReason === null ? `it is ${state}` : health.reason };
}

function judgeRunning(
  { until, prepared }: Prewarm,
  { status, reason }: Health,
  late: { afterS: number } | undefined,
): PrewarmVerdict {
  const saysSo = prepared && status !== "unhealthy";
  if (saysSo || (until === "healthy" && status === "healthy")) return { kind: "sleep" };
  if (status === "unhealthy") return { kind: "failed", reason };
  if (late === undefined) return WAIT;
  return tooLate(status === "healthy" ? "no program in it has said that it is prepared" : reason, late);
}

function tooLate(reason: string, { afterS }: { afterS: number }): PrewarmVerdict {
  return { kind: "failed", reason: `it was not ready within ${afterS} s: ${reason}` };
}

function hasRun({ lastBoot, prewarm }: MachineRecord & { prewarm: Prewarm }): boolean {
  return lastBoot !== null && Date.parse(lastBoot.at) >= Date.parse(prewarm.since);
}
