/** What is stored about a machine while its state stays. */
import { describe, expect, test } from "vitest";
import { STATES } from "../../../src/domain/machine.ts";
import { after, machine, SNAPSHOT } from "../../helpers/decisions.ts";

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

test("a cordon is stored and told once, whatever the machine does", () => {
  for (const state of STATES) {
    const on = after(machine(state), { type: "cordon", on: true });
    expect(on).toMatchObject({ record: { state, cordoned: true }, effect: null, tell: { followers: true } });
    expect(after(on.record, { type: "cordon", on: true }).tell).toEqual({});
    expect(after(on.record, { type: "cordon", on: false }).record.cordoned).toBe(false);
  }
});

describe("an app that listens elsewhere", () => {
  const why = "the app listens on 127.0.0.1:8080 only";

  test("is told once, and again when requests reach it", () => {
    const { record, tell, bestEffort } = after(machine("running"), { type: "reachability", why });
    expect(record).toMatchObject({ stateReason: why, unreachable: why });
    expect({ tell, bestEffort }).toEqual({ tell: { followers: true }, bestEffort: true });
    const reached = after(record, { type: "reachability", why: null });
    expect(reached.record).toMatchObject({ stateReason: null, unreachable: null });
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

test("a guest that the host pauses says why, in its record and its log, even if that cannot be stored", () => {
  const paused = after(machine("running"), { type: "stalled", why: "the disk is full" });
  expect(paused).toMatchObject({ record: { stateReason: "the disk is full" }, bestEffort: true });
  expect(paused.tell.log).toBe("The guest is paused: the disk is full.");
  const runs = after(paused.record, { type: "stalled", why: null });
  expect(runs.record.stateReason).toBeNull();
  expect(runs.tell.log).toBe("The guest is running again.");
});

test("a reason that no longer holds is taken back, another one stays", () => {
  const record = machine("running", { stateReason: "not ready" });
  expect(after(record, { type: "reason_over", reason: "not ready" }).record.stateReason).toBeNull();
  expect(after(record, { type: "reason_over", reason: "slow" }).record).toBe(record);
});
