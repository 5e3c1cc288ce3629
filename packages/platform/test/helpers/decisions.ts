/** Records and events for tests of `decide`: examples of every kind, and arbitrary ones. */
import { CURRENT_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import {
  type Goal,
  isResting,
  type MachineRecord,
  type MachineState,
  type PendingUpdate,
  type Prewarm,
  RESTING_STATES,
  type SnapshotRecord,
  STATES,
} from "@hibernaut/domain/machine";
import fc from "fast-check";
import {
  type Command,
  type DecideContext,
  type Decision,
  decide,
  type EffectOutcome,
  type LifecycleEvent,
} from "../../../machines/src/decide/index.ts";

export const NOW = new Date("2026-01-01T00:00:10Z");
export const CONTEXT: DecideContext = {
  now: NOW,
  id: "NEW-ID",
  limits: { suspendMaxMemoryMb: 2048, currentBundle: "bundle-1", agentProtocol: CURRENT_PROTOCOL },
};

export const SNAPSHOT: SnapshotRecord = { generation: "G1", created_at: "2026-01-01T00:00:00Z", size_bytes: 1 };
export const PENDING: PendingUpdate = {
  config: { image: "app:2" },
  version: "V2",
  imageDigest: "sha256:2",
  bundleVersion: "bundle-1",
  from: "stopped",
};
const LAST_BOOT = { kind: "cold", reason: "first_start", at: "2026-01-01T00:00:00Z", duration_ms: 1 } as const;
const BOOT = { lastBoot: LAST_BOOT, unreachable: null, stateReason: null };
export const RESUMED = { ...BOOT, lastBoot: { ...LAST_BOOT, kind: "resume", reason: "snapshot" } } as const;
const FAILED = { code: 1, signal: 0, oom: false };
const ENDED_WELL = { code: 0, signal: 0, oom: false };

export const PREWARM: Prewarm = {
  until: "healthy",
  status: "pending",
  reason: null,
  since: "2026-01-01T00:00:00Z",
  prepared: false,
};

/** A machine in a state, with what belongs to it there. */
export function machine(state: MachineState, more: Partial<MachineRecord> = {}): MachineRecord {
  return {
    id: "m1",
    app: "shop",
    name: "one",
    state,
    goal: null,
    region: "local",
    version: "V1",
    config: { image: "app:1" },
    imageDigest: "sha256:1",
    bundleVersion: "bundle-1",
    address: "127.16.0.1",
    snapshot: state === "suspended" ? SNAPSHOT : null,
    capturing: state === "suspending" ? "G2" : null,
    coldReason: "first_start",
    resetLayer: false,
    pending: state === "updating" ? PENDING : null,
    lastBoot: state === "created" ? null : LAST_BOOT,
    stateReason: null,
    restarts: 0,
    crash: null,
    createdAt: "2026-01-01T00:00:00Z",
    updatedAt: "2026-01-01T00:00:05Z",
    ...more,
  };
}

/** What `event` does, by the record that it is applied to. */
export function after(record: MachineRecord, event: LifecycleEvent, context: DecideContext = CONTEXT): Decision {
  return decide(record, event, context);
}

export const COMMANDS: Command[] = [
  { type: "start" },
  { type: "start", unattended: true, details: { by: "proxy" } },
  { type: "suspend" },
  { type: "sleep", how: "suspend" },
  { type: "sleep", how: "stop" },
  { type: "sleep", how: "suspend", otherwise: "off" },
  { type: "suspend", drain: true, details: { by: "drain" } },
  { type: "stop" },
  { type: "stop", wanted: true },
  { type: "stop", keepLayer: "it cannot be suspended" },
  { type: "stop", wanted: true, terms: { signal: "SIGKILL", timeout: 0 } },
  { type: "restart" },
  { type: "restart", terms: { timeout: 30 } },
  { type: "update", config: { image: "app:2" }, imageDigest: "sha256:2" },
  { type: "update", config: { image: "app:2" }, imageDigest: "sha256:2", prewarm: "healthy" },
  { type: "suspend", details: { by: "prewarm" } },
  { type: "stop", details: { by: "prewarm", reason: "its check fails" } },
  { type: "move_bundle" },
  { type: "destroy" },
  { type: "destroy", force: true },
  { type: "discard_snapshot", reason: "secrets_changed" },
];

export const OUTCOMES: EffectOutcome[] = [
  { type: "started", boot: BOOT },
  { type: "started", boot: RESUMED, details: { slept_ms: 1 } },
  { type: "start_failed", reason: "no kernel" },
  { type: "start_refused", reason: "the cluster directory does not answer" },
  { type: "start_hindered", reason: "EMFILE: too many open files" },
  { type: "start_killed", reason: "killed", start: { type: "boot", restedSince: null, attempt: 1 } },
  { type: "start_killed", reason: "killed", start: { type: "boot", restedSince: null, attempt: 3 } },
  { type: "captured", snapshot: { ...SNAPSHOT, generation: "G2" } },
  { type: "captured", snapshot: null },
  { type: "capture_cancelled", reason: "a start was requested" },
  { type: "capture_failed", reason: "no room" },
  { type: "halted" },
  { type: "halted", exit: FAILED },
  { type: "halt_failed", reason: "disk" },
  { type: "updated" },
  { type: "update_failed", reason: "disk" },
  { type: "removed" },
  { type: "remove_failed", reason: "disk" },
  { type: "app_ended", exit: FAILED },
  { type: "app_ended", exit: ENDED_WELL, boot: BOOT },
  { type: "lost", reason: "the virtual machine ended" },
  { type: "retry" },
];

const MILESTONES: LifecycleEvent[] = [
  { type: "snapshot_consumed" },
  { type: "snapshot_refused", reason: "cpu_model_changed" },
  { type: "snapshot_refused", reason: "resume_failed: state", carryOver: { from: "7.2.18", to: "7.2.22" } },
  { type: "cold_start", reason: "stopped" },
  { type: "cold_start", reason: "stopped", address: "127.16.0.2" },
  { type: "cold_start", reason: "cpu_model_changed", moved: { version: "V2", bundleVersion: "bundle-1" } },
];

const NOTES: LifecycleEvent[] = [
  { type: "keep_awake", lease: { until: "2026-01-01T01:00:00Z", reason: "encoding" } },
  { type: "keep_awake", lease: null },
  { type: "plan_wake", at: "2026-01-01T01:00:00Z" },
  { type: "plan_wake", at: null },
  { type: "cordon", on: true },
  { type: "cordon", on: false },
  { type: "prepared" },
  { type: "prewarm_over", status: "failed", reason: "its check fails" },
  { type: "reachability", why: "the app listens on 127.0.0.1:8080 only" },
  { type: "reachability", why: null },
  { type: "stalled", why: "the disk is full" },
  { type: "stalled", why: null },
  { type: "reason_over", reason: "not ready" },
  { type: "kept_over", reason: "expired" },
  { type: "not_suspended", reason: "the drain ran out of time" },
  { type: "drain_over" },
];

const TIME: LifecycleEvent[] = [{ type: "schedule_due" }, { type: "wake_due" }];

const RECOVERY: LifecycleEvent[] = (["running", "paused", "none"] as const).flatMap((vmm) => [
  { type: "found", vmm, published: [], captured: null },
  { type: "found", vmm, published: ["G1"], captured: null },
  { type: "found", vmm, published: ["G1", "G2"], captured: { ...SNAPSHOT, generation: "G2" } },
  { type: "found", vmm, published: ["G2"], captured: null },
]);

const TAKEN_OVER: LifecycleEvent[] = (["adopted", "unreachable", "none"] as const).flatMap((guest) => [
  { type: "taken_over", guest, next: { kind: "rest" } },
  { type: "taken_over", guest, exit: FAILED, next: { kind: "rest" } },
  { type: "taken_over", guest, next: { kind: "effect", effect: { type: "halt" } } },
  { type: "taken_over", guest, next: { kind: "outcome", outcome: { type: "capture_cancelled", reason: "" } } },
]);

const FAILURES: LifecycleEvent[] = (["boot", "back_off", "capture", "halt", "apply_update", "remove"] as const).map(
  (effect) => ({ type: "effect_failed", effect, reason: "unforeseen" }),
);

/** At least one event of every kind, and of every kind that makes a difference. */
export const EVENTS: LifecycleEvent[] = [
  ...COMMANDS,
  ...OUTCOMES,
  ...MILESTONES,
  ...NOTES,
  ...TIME,
  ...RECOVERY,
  ...TAKEN_OVER,
  ...FAILURES,
  ...OUTCOMES.map((outcome) => ({ type: "superseded" as const, outcome })),
];

const GOALS: Goal[] = [null, "running", "restarting", "destroyed"];
const SNAPSHOT_STATES: MachineState[] = ["suspended", "starting", "stopping", "updating", "destroying", "failed"];

/** Where a stop that keeps the writable layer may have come to. */
const KEEPING_STATES: MachineState[] = ["stopping", "failed", "starting", "updating", "destroying"];
export const DRAINED_STATES: MachineState[] = ["suspending", "suspended", "updating"];
export const AWAKE_STATES: MachineState[] = ["starting", "running", "suspending", "stopping", "updating", "destroying"];

/** Any machine as it may be stored: what belongs to one state alone is there and nowhere else. */
export const anyMachine: fc.Arbitrary<MachineRecord> = fc
  .record({
    state: fc.constantFrom(...STATES),
    goal: fc.constantFrom(...GOALS),
    held: fc.boolean(),
    from: fc.constantFrom(...RESTING_STATES),
    policy: fc.constantFrom("no" as const, "on-failure" as const, "always" as const),
    restarts: fc.nat(11),
    prewarm: fc.constantFrom(null, PREWARM, { ...PREWARM, status: "done" as const }),
    crashed: fc.boolean(),
    memoryMb: fc.constantFrom(128, 4096),
    bundleVersion: fc.constantFrom("bundle-0", "bundle-1"),
    moves: fc.boolean(),
    unreachable: fc.constantFrom(null, "nothing listens"),
    stateReason: fc.constantFrom(null, "nothing listens", "not ready"),
    // With these, a run of the schedule is due or not, or the clock was set back since the last one.
    scheduleHandled: fc.constantFrom(null, "2025-12-31T23:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    wakeAt: fc.constantFrom(null, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    sleep: fc.record({
      keepLayer: fc.constantFrom(null, "it cannot be suspended"),
      keep: fc.boolean(),
      autoDestroy: fc.boolean(),
      resetLayer: fc.boolean(),
      drained: fc.boolean(),
      notSuspended: fc.constantFrom(null, "drain" as const, "proxy" as const),
    }),
  })
  .map(({ state, goal, held, from, policy, memoryMb, crashed, bundleVersion, moves, sleep, ...rest }) => {
    const retryAt = "2026-01-01T00:00:20Z";
    const exit = { at: "", reason: "", exit_code: 1, at_start: false };
    const crash = { ...exit, attempt: 1, max_attempts: 10, retry_at: retryAt };
    return machine(state, {
      ...rest,
      goal: isResting(state) || state === "destroyed" || (goal === "destroyed" && state !== "stopping") ? null : goal,
      snapshot: held && SNAPSHOT_STATES.includes(state) ? SNAPSHOT : null,
      bundleVersion,
      bundleMove: moves ? { version: "V3" } : null,
      pending: state === "updating" ? { ...PENDING, from } : null,
      config: {
        image: "app:1",
        guest: { memory_mb: memoryMb },
        restart: { policy },
        keep_layer: sleep.keep,
        auto_destroy: sleep.autoDestroy,
        schedule: "0 * * * *",
      },
      resetLayer: sleep.resetLayer && state !== "running",
      keepLayer: KEEPING_STATES.includes(state) ? sleep.keepLayer : null,
      drained: sleep.drained && (goal === null || goal === "destroyed") && DRAINED_STATES.includes(state),
      notSuspended:
        sleep.notSuspended !== null && AWAKE_STATES.includes(state)
          ? { by: sleep.notSuspended, reason: "it is too large" }
          : null,
      crash: crashed ? crash : null,
    });
  });

/** Every pair of states between which a machine may move, as `from>to`. */
export function listedMoves(): Set<string> {
  const moves = new Set<string>();
  for (const state of STATES)
    for (const goal of GOALS)
      for (const from of RESTING_STATES)
        for (const policy of ["no", "always"] as const) {
          const record = machine(state, {
            goal,
            ...(state === "updating" && { pending: { ...PENDING, from } }),
            config: { image: "app:1", restart: { policy } },
          });
          for (const event of EVENTS) {
            const { state: to } = after(record, event).record;
            if (to !== state) moves.add(`${state}>${to}`);
          }
        }
  return moves;
}
