/** What is stored about a machine while its state stays. */
import { STATES } from "@hibernaut/domain/machine";
import { describe, expect, test } from "vitest";
import { after, CONTEXT, machine, NOW, PENDING, PREWARM, SNAPSHOT } from "../../../platform/test/helpers/decisions.ts";

describe("what a start stores in its middle", () => {
  test("the snapshot is gone from the record before its guest runs, whatever was requested meanwhile", () => {
    for (const state of STATES) {
      const { record, effect, tell } = after(machine(state, { snapshot: SNAPSHOT }), { type: "snapshot_consumed" });
      expect(record).toMatchObject({ state, snapshot: null, coldReason: "snapshot_consumed" });
      expect({ effect, tell }).toEqual({ effect: null, tell: {} });
    }
  });

  test("a snapshot that does not fit leaves its reason to the cold start", () => {
    const record = machine("starting", { snapshot: SNAPSHOT });
    const refused = after(record, { type: "snapshot_refused", reason: "cpu_model_changed" }).record;
    expect(refused).toEqual({ ...record, snapshot: null, coldReason: "cpu_model_changed" });
  });

  test("a cold start has a writable layer, and keeps its address unless it has a new one", () => {
    const record = machine("starting", { resetLayer: true });
    const cold = { ...record, resetLayer: false, keepLayer: null, coldReason: "stopped" };
    expect(after(record, { type: "cold_start", reason: "stopped" }).record).toEqual(cold);
    const moved = after(record, { type: "cold_start", reason: "stopped", address: "127.16.0.2" }).record;
    expect(moved).toEqual({ ...cold, address: "127.16.0.2" });
  });
});

test("a lease to stay awake is stored and told, and ends", () => {
  const lease = { until: "2026-01-01T01:00:00Z", reason: "encoding" };
  const held = after(machine("running"), { type: "keep_awake", lease });
  expect(held).toMatchObject({ record: { keepAwake: lease }, effect: null, tell: { followers: true } });
  expect(held).not.toHaveProperty("bestEffort");
  expect(after(held.record, { type: "keep_awake", lease: null }).record.keepAwake).toBeNull();
});

/** An entry of the history that leaves the state as it is. */
const entry = (type: string, details = {}, state = "running") => ({
  at: NOW.toISOString(),
  type,
  from: state,
  to: state,
  details,
});

test("a cordon and its end are stored and told once each, whatever the machine does", () => {
  for (const state of STATES) {
    const on = after(machine(state), { type: "cordon", on: true });
    expect(on).toMatchObject({ record: { state, cordoned: true }, effect: null, tell: { followers: true } });
    expect(on.tell.history).toEqual(entry("cordoned", {}, state));
    expect(after(on.record, { type: "cordon", on: true }).tell).toEqual({});
    const off = after(on.record, { type: "cordon", on: false });
    expect(off.record.cordoned).toBe(false);
    expect(off.tell.history).toEqual(entry("uncordoned", {}, state));
    expect(after(off.record, { type: "cordon", on: false }).tell).toEqual({});
  }
});

test("what is noted about a sleeping machine does not change how long it has slept", () => {
  const asleep = after(machine("suspending"), { type: "captured", snapshot: { ...SNAPSHOT, generation: "G2" } }).record;
  const later = { ...CONTEXT, now: new Date(NOW.getTime() + 60_000) };
  const cordoned = after(asleep, { type: "cordon", on: true }, later).record;
  expect(cordoned.updatedAt).toBe(later.now.toISOString());
  expect(after(cordoned, { type: "start" }, later).effect).toMatchObject({ restedSince: NOW.toISOString() });
});

test("a sleeping machine that is no longer kept warm says so, and sleeps on", () => {
  for (const state of STATES) {
    const record = machine(state);
    const over = after(record, { type: "kept_over", reason: "expired" });
    if (state !== "suspended") expect(over.record, state).toBe(record);
    else {
      expect(over.record).toEqual({ ...record, updatedAt: NOW.toISOString() });
      expect(over.tell).toEqual({ history: entry("kept_ended", { reason: "expired" }, state) });
    }
  }
});

test("rules for what it connects to hold at once, and through an update that was asked for before", () => {
  const pending = { ...PENDING, from: "running" } as const;
  const egress = { default: "deny" } as const;
  const changed = after(machine("updating", { pending }), { type: "egress", egress });
  expect(changed.record.config.network).toEqual({ egress });
  expect(changed.tell.history).toEqual(entry("egress_changed", { egress }, "updating"));
  expect(after(changed.record, { type: "egress", egress }).tell).toEqual({});
  expect(after(changed.record, { type: "updated" }).record.config.network).toEqual({ egress });
});

describe("the end of a prewarm", () => {
  const pending = machine("running", { prewarm: PREWARM });
  const reason = "its check fails";

  test("is told, once", () => {
    const over = after(pending, { type: "prewarm_over", status: "failed", reason });
    expect(over.record.prewarm).toMatchObject({ status: "failed", reason });
    expect(over.tell.history).toEqual(entry("prewarm_ended", { status: "failed", reason }));
    expect(after(over.record, { type: "prewarm_over", status: "failed", reason }).tell).toEqual({});
  });

  test("is told when someone starts the machine that runs already", () => {
    const taken = after(pending, { type: "start" });
    expect(taken.tell.history).toEqual(entry("prewarm_ended", { status: "taken", reason: "a start came first" }));
    expect(taken.record.updatedAt).toBe(NOW.toISOString());
    expect(after(taken.record, { type: "start" }).tell).toEqual({});
  });
});

describe("an app that listens elsewhere", () => {
  const why = "the app listens on 127.0.0.1:8080 only";

  test("is told once, and again when requests reach it", () => {
    const { record, tell, bestEffort } = after(machine("running"), { type: "reachability", why });
    expect(record).toMatchObject({ stateReason: why, unreachable: why });
    const history = entry("unreachable", { reason: why });
    expect({ tell, bestEffort }).toEqual({ tell: { followers: true, history }, bestEffort: true });
    expect(after(record, { type: "reachability", why }).record).toBe(record);
    const reached = after(record, { type: "reachability", why: null });
    expect(reached.record).toMatchObject({ stateReason: null, unreachable: null });
    expect(reached.tell.history).toEqual(entry("reachable"));
  });

  test("does not take back the reason of something else", () => {
    const record = machine("running", { stateReason: "the last suspend failed", unreachable: why });
    expect(after(record, { type: "reachability", why: null }).record.stateReason).toBe("the last suspend failed");
  });

  test.each(["starting", "suspending", "stopping"] as const)("is not told while %s: the effect learns it", (state) => {
    const record = machine(state);
    expect(after(record, { type: "reachability", why }).record).toBe(record);
  });

  test("nothing is told of an app that was reachable all the time", () => {
    const record = machine("running");
    expect(after(record, { type: "reachability", why: null }).record).toBe(record);
  });
});

test("a guest that the host pauses says why, in its record and its history, even if that cannot be stored", () => {
  const paused = after(machine("running"), { type: "stalled", why: "the disk is full" });
  expect(paused).toMatchObject({ record: { stateReason: "the disk is full" }, bestEffort: true });
  expect(paused.tell.history).toEqual(entry("stalled", { reason: "the disk is full" }));
  expect(after(paused.record, { type: "stalled", why: "the disk is full" }).record).toBe(paused.record);
  const runs = after(paused.record, { type: "stalled", why: null });
  expect(runs.record.stateReason).toBeNull();
  expect(runs.tell.history).toEqual(entry("stall_ended"));
  expect(after(runs.record, { type: "stalled", why: null }).record).toBe(runs.record);
});

test("a reason that no longer holds is taken back, another one stays", () => {
  const record = machine("running", { stateReason: "not ready" });
  const over = after(record, { type: "reason_over", reason: "not ready" });
  expect(over.record.stateReason).toBeNull();
  expect(over.tell.history).toEqual(entry("reason_ended", { was: "not ready" }));
  expect(after(record, { type: "reason_over", reason: "slow" }).record).toBe(record);
});
