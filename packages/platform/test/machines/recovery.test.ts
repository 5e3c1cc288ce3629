import { describe, expect, test } from "vitest";
import { type Observed, planRecovery } from "../../src/machines/recovery.ts";
import { STATES } from "../../src/domain/machine.ts";

const snapshot = { generation: "G1", created_at: "", size_bytes: 1 };
const nothing: Observed = { vmm: "none", published: [] };

describe("after the platform was killed", () => {
  test("a running guest is adopted and never noticed", () => {
    const plan = planRecovery({ state: "running", snapshot: null, capturing: null }, { vmm: "running", published: [] });
    expect(plan).toMatchObject({ vmm: "adopt", next: { kind: "rest" } });
  });

  test("a machine whose guest is gone is treated like one that crashed", () => {
    const plan = planRecovery({ state: "running", snapshot: null, capturing: null }, nothing);
    expect(plan).toMatchObject({ vmm: "none", next: { kind: "outcome", outcome: "lost" } });
  });

  test("a suspended machine keeps its snapshot, and a VMM that was still ending is ended", () => {
    const plan = planRecovery({ state: "suspended", snapshot, capturing: null }, { vmm: "paused", published: ["G1"] });
    expect(plan).toMatchObject({ vmm: "kill", keep: "G1", next: { kind: "rest" } });
  });

  test("a machine whose resume could not be started keeps its snapshot, and nothing else does", () => {
    const failed = planRecovery({ state: "failed", snapshot, capturing: null }, { vmm: "none", published: ["G1"] });
    expect(failed).toMatchObject({ keep: "G1", next: { kind: "rest" } });
    expect(
      planRecovery({ state: "stopped", snapshot: null, capturing: null }, { vmm: "none", published: ["G1"] }).keep,
    ).toBeNull();
  });

  describe("during a suspend", () => {
    const recorded = { state: "suspending", snapshot: null, capturing: "G2" } as const;

    test("before the snapshot was whole, the guest goes on", () => {
      const paused = planRecovery(recorded, { vmm: "paused", published: [] });
      expect(paused).toMatchObject({
        vmm: "wake",
        keep: null,
        next: { kind: "outcome", outcome: "capture_cancelled" },
      });
      const running = planRecovery(recorded, { vmm: "running", published: [] });
      expect(running).toMatchObject({
        vmm: "adopt",
        keep: null,
        next: { kind: "outcome", outcome: "capture_cancelled" },
      });
    });

    test.each(["paused", "none"] as const)("once it was whole, the suspend is finished (VMM %s)", (vmm) => {
      const plan = planRecovery(recorded, { vmm, published: ["G2"] });
      expect(plan).toMatchObject({ keep: "G2", next: { kind: "outcome", outcome: "captured" } });
      expect(plan.vmm).toBe(vmm === "none" ? "none" : "kill");
    });

    test("a generation beside a guest that runs is stale: the guest has gone on", () => {
      expect(planRecovery(recorded, { vmm: "running", published: ["G2"] })).toMatchObject({ vmm: "adopt", keep: null });
    });

    test("an older generation is never mistaken for the one being taken", () => {
      expect(planRecovery(recorded, { vmm: "paused", published: ["G1"] })).toMatchObject({ vmm: "wake", keep: null });
    });
  });

  describe("during a start", () => {
    test("a snapshot that was not consumed has not run: resume it again from the beginning", () => {
      const plan = planRecovery({ state: "starting", snapshot, capturing: null }, { vmm: "paused", published: ["G1"] });
      expect(plan).toMatchObject({ vmm: "kill", keep: "G1", next: { kind: "effect", effect: "boot" } });
    });

    test("a consumed snapshot is never used again: its guest goes on, or the start is cold", () => {
      const recorded = { state: "starting", snapshot: null, capturing: null } as const;
      expect(planRecovery(recorded, { vmm: "paused", published: ["G1"] })).toMatchObject({ vmm: "wake", keep: null });
      expect(planRecovery(recorded, { vmm: "none", published: ["G1"] })).toMatchObject({ vmm: "none", keep: null });
    });
  });

  test.each([
    ["restarting", "back_off"],
    ["stopping", "halt"],
    ["updating", "apply_update"],
    ["destroying", "remove"],
  ] as const)("%s is finished by %s", (state, effect) => {
    for (const vmm of ["running", "paused", "none"] as const) {
      expect(planRecovery({ state, snapshot: null, capturing: null }, { vmm, published: [] }).next).toEqual({
        kind: "effect",
        effect,
      });
    }
  });

  test("no plan lets a guest run beside a snapshot that could run again", () => {
    for (const state of STATES) {
      for (const vmm of ["running", "paused"] as const) {
        for (const held of [snapshot, null]) {
          for (const published of [[], ["G1"], ["G2"]]) {
            const plan = planRecovery(
              { state, snapshot: held, capturing: state === "suspending" ? "G2" : null },
              { vmm, published },
            );
            if (plan.vmm === "adopt" || plan.vmm === "wake")
              expect(plan.keep, JSON.stringify({ state, vmm, held, published })).toBeNull();
          }
        }
      }
    }
  });
});
