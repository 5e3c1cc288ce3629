/** What the outcomes of effects, and the ends of apps, mean. */
import { describe, expect, test } from "vitest";
import {
  after,
  CONTEXT,
  machine,
  OUTCOMES,
  PENDING,
  RESUMED,
  SNAPSHOT,
} from "../../../platform/test/helpers/decisions.ts";
import type { EffectOutcome } from "../../src/decide/index.ts";

const FAILED = { code: 1, signal: 0, oom: false };
const BOOT = { lastBoot: { ...RESUMED.lastBoot, kind: "cold" as const }, unreachable: null, stateReason: null };
const policy = (name: "no" | "on-failure" | "always") => ({ config: { image: "app:1", restart: { policy: name } } });

describe("a start", () => {
  test("that resumed leaves the files of its snapshot to be deleted; a cold one has none", () => {
    const resumed = after(machine("starting"), { type: "started", boot: RESUMED, details: { slept_ms: 5 } });
    expect(resumed.record).toMatchObject({ state: "running", lastBoot: RESUMED.lastBoot });
    expect(resumed.effect).toEqual({ type: "discard_snapshots", memory: false });
    expect(resumed.tell.history?.details).toEqual({ kind: "resume", duration_ms: 1, slept_ms: 5 });
    expect(resumed.unsynced, "a request waits for it").toBe(true);
    const cold = after(machine("starting"), { type: "started", boot: BOOT });
    expect([cold.effect, cold.unsynced]).toEqual([null, undefined]);
  });

  test("that the host may not make leaves the machine as it was, and says why", () => {
    const refusal = { type: "start_refused", reason: "no lease" } as const;
    const asleep = after(machine("starting", { snapshot: SNAPSHOT }), refusal).record;
    expect(asleep).toMatchObject({ state: "suspended", stateReason: "no lease", snapshot: SNAPSHOT });
    expect(after(machine("starting"), refusal).record).toMatchObject({ state: "stopped", stateReason: "no lease" });
  });

  test("that failed says why, and keeps a snapshot that did not run", () => {
    const { record, tell } = after(machine("starting", { snapshot: SNAPSHOT }), {
      type: "start_failed",
      reason: "no room",
    });
    expect(record).toMatchObject({ state: "failed", stateReason: "no room", snapshot: SNAPSHOT });
    expect(tell).not.toHaveProperty("memoryGone");
    expect(tell.history?.details).toEqual({ reason: "no room" });
  });

  test("whose guest was killed is made again, up to three times", () => {
    const record = machine("starting");
    const start = { type: "boot", restedSince: "2026-01-01T00:00:00Z", attempt: 1 } as const;
    const again = after(record, { type: "start_killed", reason: "killed", start });
    expect(again).toEqual({
      record,
      effect: { ...start, attempt: 2 },
      tell: { log: expect.stringContaining("again") },
    });
    const last = after(record, { type: "start_killed", reason: "killed", start: { ...start, attempt: 3 } });
    expect(last.record).toMatchObject({ state: "failed", stateReason: "killed" });
    expect(last.effect).toBeNull();
  });
});

describe("a suspend", () => {
  test("that worked forgets earlier failures, and its capture", () => {
    const record = machine("suspending", { restarts: 2, stateReason: "slow", coldReason: "stopped" });
    const { record: next, tell } = after(record, { type: "captured", snapshot: SNAPSHOT, details: { frozen_ms: 7 } });
    expect(next).toMatchObject({
      state: "suspended",
      snapshot: SNAPSHOT,
      capturing: null,
      coldReason: "",
      stateReason: null,
      restarts: 0,
    });
    expect(tell.history?.details).toEqual({ size_bytes: 1, frozen_ms: 7 });
  });

  test("that failed says so in the state reason, and one that was cancelled does not", () => {
    const failed = after(machine("suspending"), { type: "capture_failed", reason: "no room" });
    expect(failed.record).toMatchObject({
      state: "running",
      stateReason: "the last suspend failed: no room",
      capturing: null,
    });
    const cancelled = after(machine("suspending"), { type: "capture_cancelled", reason: "a start was requested" });
    expect(cancelled.record).toMatchObject({ state: "running", stateReason: null, capturing: null });
    expect(cancelled.tell.history?.details).toEqual({ reason: "a start was requested" });
  });
});

describe("a stop", () => {
  test("forgets the snapshot, the lease and the writable layer, and says how the app ended", () => {
    const lease = { until: "2026-01-01T01:00:00Z", reason: "" };
    const record = machine("stopping", { snapshot: SNAPSHOT, keepAwake: lease });
    const { record: next, tell } = after(record, { type: "halted", exit: FAILED });
    const stateReason = "the app exited with code 1";
    expect(next).toMatchObject({
      state: "stopped",
      snapshot: null,
      keepAwake: null,
      resetLayer: true,
      coldReason: "stopped",
      stateReason,
    });
    expect(tell).toMatchObject({ history: { details: { reason: stateReason } }, memoryGone: true });
  });
});

describe("an update", () => {
  test.each(["created", "suspended", "stopped", "failed"] as const)("that began %s ends there", (from) => {
    const { record } = after(machine("updating", { pending: { ...PENDING, from } }), { type: "updated" });
    expect(record).toMatchObject({
      state: from,
      version: "V2",
      config: { image: "app:2" },
      pending: null,
      coldReason: "updated",
    });
  });

  test.each(["running", "restarting"] as const)("of a %s machine ends in a start", (from) => {
    const { record, effect } = after(machine("updating", { pending: { ...PENDING, from } }), { type: "updated" });
    expect(record.state).toBe("starting");
    expect(effect?.type).toBe("boot");
  });

  test("that failed is forgotten", () => {
    const { record } = after(machine("updating"), { type: "update_failed", reason: "disk" });
    expect(record).toMatchObject({ state: "failed", pending: null, version: "V1", stateReason: "disk" });
  });

  test("that an earlier release stored to discard a snapshot changes nothing else", () => {
    const pending = { ...PENDING, from: "suspended" as const, coldReason: "secrets_changed" };
    const { record } = after(machine("updating", { pending, snapshot: SNAPSHOT }), { type: "updated" });
    expect(record).toMatchObject({
      state: "suspended",
      snapshot: null,
      version: "V1",
      coldReason: "secrets_changed",
      resetLayer: false,
    });
  });
});

describe("an app that ends by itself", () => {
  test("is halted and started again, if its policy says so", () => {
    const { record, effect, tell } = after(machine("running"), { type: "app_ended", exit: FAILED });
    expect(record).toMatchObject({ state: "stopping", goal: "restarting", restarts: 1 });
    expect(effect).toEqual({ type: "halt" });
    expect(tell.history).toMatchObject({
      type: "app_restarts",
      details: { ...FAILED, reason: "the app exited with code 1", attempt: 1, max_attempts: 10 },
    });
    const halted = after(record, { type: "halted", exit: FAILED });
    expect(halted.record).toMatchObject({ state: "restarting", goal: null, crash: { attempt: 1 } });
    expect(halted.effect).toEqual({ type: "back_off", until: "2026-01-01T00:00:10.250Z" });
    const retried = after(halted.record, { type: "retry" });
    expect(retried.record.state).toBe("starting");
    expect(retried.effect).toEqual({ type: "boot", restedSince: halted.record.updatedAt, attempt: 1 });
  });

  test("rests with policy no", () => {
    const { record, tell } = after(machine("running", policy("no")), { type: "app_ended", exit: FAILED });
    expect(record).toMatchObject({ state: "stopping", goal: null, restarts: 0, crash: { retry_at: null } });
    expect(tell.history).toMatchObject({
      type: "app_ended",
      details: { ...FAILED, reason: "the app exited with code 1" },
    });
  });

  test("before it was ready counts from the start that it ended in", () => {
    const longAgo = { ...BOOT.lastBoot, at: "2025-01-01T00:00:00Z" };
    const boot = { ...BOOT, lastBoot: { ...BOOT.lastBoot, at: "2026-01-01T00:00:09Z" } };
    const record = machine("starting", { restarts: 3, lastBoot: longAgo });
    const { record: next } = after(record, { type: "app_ended", exit: FAILED, boot });
    expect(next).toMatchObject({ restarts: 4, crash: { at_start: true, attempt: 4 }, lastBoot: boot.lastBoot });
  });
});

describe("a virtual machine that disappears", () => {
  test.each(["running", "suspending"] as const)(
    "while %s waits for its restart, with no guest left to halt",
    (state) => {
      const { record, effect, tell } = after(machine(state), { type: "lost", reason: "it ended" });
      expect(record).toMatchObject({
        state: "restarting",
        coldReason: "vmm_lost",
        stateReason: "it ended",
        restarts: 1,
      });
      expect(effect).toMatchObject({ type: "back_off" });
      expect(tell).toMatchObject({ history: { type: "lost_restarts" }, memoryGone: true });
    },
  );

  test("fails with policy no", () => {
    const { record, tell } = after(machine("running", policy("no")), { type: "lost", reason: "it ended" });
    expect(record).toMatchObject({ state: "failed", stateReason: "it ended" });
    expect(tell.history).toMatchObject({ type: "lost", details: { reason: "it ended" } });
  });

  const lostWithHost = { type: "lost", reason: "it ended", unwatched: true } as const;

  test("that was lost with its host comes back, and has all its restarts, however often the host fails", () => {
    const before = { ...machine("running"), restarts: 5 };
    const { record } = after(before, lostWithHost);
    expect(record).toMatchObject({ state: "restarting", restarts: 0, crash: { attempt: 1, exit_code: null } });
    expect(after(before, { type: "lost", reason: "it ended" }).record).toMatchObject({ restarts: 6 });
  });

  test("that was lost with its host comes back also without any restarts of its own, unless its policy is no", () => {
    const none = machine("running", {
      config: { image: "app:1", restart: { policy: "on-failure", max_retries: 0 } },
    });
    expect(after(none, lostWithHost).record).toMatchObject({ state: "restarting", restarts: 0 });
    expect(after(none, { type: "lost", reason: "it ended" }).record).toMatchObject({ state: "failed" });
    expect(after(machine("running", policy("no")), lostWithHost).record).toMatchObject({ state: "failed" });
  });
});

describe("an outcome that comes too late", () => {
  test.each(OUTCOMES)("$type changes nothing in a machine at rest", (outcome) => {
    const record = machine("stopped");
    const decision = after(record, outcome);
    expect(decision.record).toBe(record);
    expect(decision).toMatchObject({ effect: null, tell: { refusal: { code: "aborted" } } });
  });

  test("of an effect that was superseded decides nothing, even where it could", () => {
    for (const outcome of OUTCOMES.filter(({ type }) => type.startsWith("start") || type === "retry")) {
      const record = machine(outcome.type === "retry" ? "restarting" : "starting");
      expect(after(record, { type: "superseded", outcome })).toEqual({ record, effect: null, tell: {} });
    }
  });

  test("still tells whether there is a snapshot", () => {
    const captured: EffectOutcome = { type: "captured", snapshot: SNAPSHOT };
    expect(after(machine("stopping"), { type: "superseded", outcome: captured }).record.snapshot).toEqual(SNAPSHOT);
    expect(after(machine("running"), { type: "superseded", outcome: captured }).record.snapshot).toBeNull();
    const held = machine("updating", { snapshot: SNAPSHOT });
    expect(after(held, { type: "superseded", outcome: { type: "halted" } }).record).toEqual({
      ...held,
      snapshot: null,
    });
  });
});

test.each([
  ["boot", "starting", "failed"],
  ["back_off", "restarting", "starting"],
  ["capture", "suspending", "restarting"],
  ["halt", "stopping", "failed"],
  ["apply_update", "updating", "failed"],
  ["remove", "destroying", "failed"],
] as const)("an unforeseen failure of %s takes a machine from %s to %s", (effect, from, to) => {
  const { record } = after(machine(from), { type: "effect_failed", effect, reason: "unforeseen" }, CONTEXT);
  expect(record.state).toBe(to);
});

describe("a machine with auto_destroy", () => {
  const config = (name: "no" | "on-failure") => ({
    config: { image: "app:1", auto_destroy: true, restart: { policy: name } },
  });

  test("is destroyed once its app has ended and its guest is gone, and its history says why", () => {
    const ended = after(machine("running", config("on-failure")), { type: "app_ended", exit: { ...FAILED, code: 0 } });
    expect(ended.record).toMatchObject({ state: "stopping", goal: "destroyed" });
    const { record, effect, tell } = after(ended.record, { type: "halted" });
    expect({ state: record.state, effect }).toEqual({ state: "destroying", effect: { type: "remove" } });
    expect(tell.history).toMatchObject({ type: "halted", to: "destroying", details: { auto_destroy: true } });
  });

  test("is started again as long as its restart policy says so, and destroyed after that", () => {
    const record = machine("running", config("on-failure"));
    const end = { type: "app_ended", exit: FAILED } as const;
    expect(after(record, end).record.goal).toBe("restarting");
    expect(after({ ...record, restarts: 10 }, end).record.goal).toBe("destroyed");
    expect(after(machine("running", config("no")), end).record.goal).toBe("destroyed");
  });

  test("is destroyed after a client's stop, also of one that sleeps, and not after the proxy's", () => {
    for (const state of ["running", "suspended", "starting", "suspending", "restarting", "failed"] as const)
      expect(after(machine(state, config("no")), { type: "stop", wanted: true }).record.goal, state).toBe("destroyed");
    const idle = after(machine("running", config("no")), { type: "sleep", how: "stop" }).record;
    expect(idle).toMatchObject({ state: "stopping", goal: null });
    expect(after(idle, { type: "halted" }).record.state).toBe("stopped");
    expect(after(idle, { type: "stop", wanted: true }).record.goal, "a client stops it meanwhile").toBe("destroyed");
  });

  test("stays when it is lost: nobody knows how far its app came", () => {
    const lost = { type: "lost", reason: "the virtual machine ended" } as const;
    expect(after(machine("running", config("no")), lost).record).toMatchObject({ state: "failed", goal: null });
  });

  test.each([{ type: "start" }, { type: "restart" }] as const)("refuses $type while it ends", (command) => {
    const { tell } = after(machine("stopping", { ...config("no"), goal: "destroyed" }), command);
    expect(tell.refusal).toMatchObject({ code: "aborted", message: expect.stringContaining("auto_destroy") });
  });
});
