/** What happens to a machine when the platform comes back. */
import { type MachineRecord, STATES } from "@hibernaut/domain/machine";
import { describe, expect, test } from "vitest";
import { after, machine, SNAPSHOT } from "../../../platform/test/helpers/decisions.ts";
import type { FoundOnHost, TakenOver, TakeOver } from "../../src/decide/index.ts";

const G2 = { ...SNAPSHOT, generation: "G2" };

function plan(record: MachineRecord, found: Partial<FoundOnHost>): TakeOver {
  const decision = after(record, { type: "found", vmm: "none", published: [], captured: null, ...found });
  expect(decision.record).toBe(record);
  expect(decision.tell).toEqual({});
  if (decision.effect?.type !== "take_over") throw new Error("nothing is taken over");
  return decision.effect;
}

const takenOver = (record: MachineRecord, what: Partial<TakenOver>) =>
  after(record, { type: "taken_over", guest: "adopted", next: { kind: "rest" }, ...what });

describe("after the platform was killed", () => {
  test("a running guest is adopted and never noticed", () => {
    expect(plan(machine("running"), { vmm: "running" })).toMatchObject({ vmm: "adopt", next: { kind: "rest" } });
  });

  test("a machine whose guest is gone is treated like one that crashed", () => {
    expect(plan(machine("running"), {})).toMatchObject({ vmm: "none", next: { outcome: { type: "lost" } } });
  });

  test("a suspended machine keeps its snapshot, and a VMM that was still ending is ended", () => {
    const found = plan(machine("suspended"), { vmm: "paused", published: ["G1"] });
    expect(found).toMatchObject({ vmm: "kill", keep: "G1", next: { kind: "rest" } });
  });

  test("a machine whose resume could not be started keeps its snapshot, and nothing else does", () => {
    const failed = plan(machine("failed", { snapshot: SNAPSHOT }), { published: ["G1"] });
    expect(failed).toMatchObject({ keep: "G1", next: { kind: "rest" } });
    expect(plan(machine("stopped"), { published: ["G1"] }).keep).toBeNull();
  });

  test.each(["suspended", "failed"] as const)("what a discarded snapshot of a %s machine left is deleted", (state) => {
    const found = plan(machine(state, { snapshot: null }), { published: ["G1"] });
    const effect = { type: "discard_snapshots", memory: true };
    expect(found).toMatchObject({ keep: null, next: { kind: "effect", effect } });
  });

  describe("during a suspend", () => {
    const recorded = machine("suspending");

    test.each([
      ["paused", "wake"],
      ["running", "adopt"],
    ] as const)("before the snapshot was whole, a guest that is %s keeps running", (vmm, how) => {
      const found = plan(recorded, { vmm });
      expect(found).toMatchObject({ vmm: how, keep: null, next: { outcome: { type: "capture_cancelled" } } });
    });

    test.each(["paused", "none"] as const)("once it was whole, the suspend is finished (VMM %s)", (vmm) => {
      const found = plan(recorded, { vmm, published: ["G2"], captured: G2 });
      expect(found).toMatchObject({ keep: "G2", next: { outcome: { type: "captured", snapshot: G2 } } });
      expect(found.vmm).toBe(vmm === "none" ? "none" : "kill");
    });

    test("a generation next to a guest that runs is stale: the guest has run on", () => {
      expect(plan(recorded, { vmm: "running", published: ["G2"] })).toMatchObject({ vmm: "adopt", keep: null });
    });

    test("an older generation is never mistaken for the one being taken", () => {
      expect(plan(recorded, { vmm: "paused", published: ["G1"] })).toMatchObject({ vmm: "wake", keep: null });
    });

    test("a whole snapshot that can no longer be read ends in a cold start that says so", () => {
      const { next } = plan(recorded, { published: ["G2"] });
      const { record } = takenOver(recorded, { guest: "none", next });
      expect(record).toMatchObject({
        state: "suspended",
        snapshot: null,
        coldReason: expect.stringMatching(/^snapshot_corrupt: /),
      });
    });
  });

  describe("during a start", () => {
    test("a snapshot that was not consumed has not run: resume it again from the beginning", () => {
      const found = plan(machine("starting", { snapshot: SNAPSHOT }), { vmm: "paused", published: ["G1"] });
      expect(found).toMatchObject({ vmm: "kill", keep: "G1", next: { effect: { type: "boot" } } });
    });

    test("a consumed snapshot is never used again: its guest keeps running, or the start is cold", () => {
      const recorded = machine("starting");
      expect(plan(recorded, { vmm: "paused", published: ["G1"] })).toMatchObject({ vmm: "wake", keep: null });
      expect(plan(recorded, { vmm: "none", published: ["G1"] })).toMatchObject({ vmm: "none", keep: null });
    });

    test("its guest may not answer yet, and is left to the start", () => {
      expect(plan(machine("starting"), { vmm: "running" }).hello).toBe(false);
      expect(plan(machine("running"), { vmm: "running" }).hello).toBe(true);
    });
  });

  test.each([
    ["restarting", "back_off"],
    ["stopping", "halt"],
    ["updating", "apply_update"],
    ["destroying", "remove"],
  ] as const)("%s is finished by %s, with its guest or without", (state, type) => {
    for (const vmm of ["running", "paused", "none"] as const) {
      const { next } = plan(machine(state), { vmm });
      expect(next).toMatchObject({ kind: "effect", effect: { type } });
      for (const guest of ["adopted", "unreachable", "none"] as const)
        expect(takenOver(machine(state), { guest, next }).effect).toMatchObject({ type });
    }
  });

  test("no plan lets a guest run next to a snapshot that could run again", () => {
    for (const state of STATES)
      for (const vmm of ["running", "paused"] as const)
        for (const snapshot of [SNAPSHOT, null])
          for (const published of [[], ["G1"], ["G2"]]) {
            const found = plan(machine(state, { snapshot }), { vmm, published });
            if (found.vmm === "adopt" || found.vmm === "wake")
              expect(found.keep, JSON.stringify({ state, vmm, snapshot, published })).toBeNull();
          }
  });
});

describe("once host and record agree", () => {
  const exit = { code: 3, signal: 0, oom: false };

  test("a guest that was adopted runs on, and its log says so", () => {
    const record = machine("running");
    const log = "The platform restarted and found the guest running.";
    expect(takenOver(record, {})).toEqual({ record, effect: null, tell: { log } });
  });

  test("an app that ended while no platform was there to hear of it is treated like any other", () => {
    const { record, tell } = takenOver(machine("running"), { exit });
    expect(record).toMatchObject({ state: "stopping", goal: "restarting" });
    expect(tell.history).toMatchObject({ type: "app_restarts", details: exit });
  });

  test.each(["running", "suspending"] as const)("a guest that does not answer is lost (%s)", (state) => {
    const { next } = plan(machine(state), { vmm: "paused" });
    const { record, tell } = takenOver(machine(state), { guest: "unreachable", next });
    expect(record).toMatchObject({ state: "restarting", coldReason: "vmm_lost" });
    expect(tell.history).toMatchObject({ details: { reason: expect.stringMatching(/did not answer/) } });
  });

  test("a suspend that the platform did not live to see ends as it would have", () => {
    const { next } = plan(machine("suspending"), { vmm: "none", published: ["G2"], captured: G2 });
    const { record, tell } = takenOver(machine("suspending", { restarts: 1 }), { guest: "none", next });
    expect(record).toMatchObject({ state: "suspended", snapshot: G2, capturing: null, coldReason: "", restarts: 0 });
    expect(tell.history).toMatchObject({ type: "captured", details: { reason: "the snapshot was whole" } });
  });
});
