/** What holds for every state and every event. */
import { isResting, type MachineRecord, type MachineState, STATES } from "@hibernaut/domain/machine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  AWAKE_STATES,
  after,
  anyMachine,
  CONTEXT,
  DRAINED_STATES,
  EVENTS,
  listedMoves,
  machine,
} from "../../../platform/test/helpers/decisions.ts";
import { longOr } from "../../../platform/test/helpers/long.ts";
import type { Command, Decision, LifecycleEvent } from "../../src/decide/index.ts";

/** The work that gets a machine out of a state. A state without any is left by commands, or by its guest. */
const WORK: Partial<Record<MachineState, string>> = {
  starting: "boot",
  suspending: "capture",
  stopping: "halt",
  updating: "apply_update",
  destroying: "remove",
  restarting: "back_off",
};
const MAY_HOLD_SNAPSHOT = ["suspended", "starting", "stopping", "updating", "destroying", "failed"];

const LARGE = { image: "app:1", guest: { memory_mb: 4096 } };

const anyEvent = fc.constantFrom(...EVENTS);

function always(check: (record: MachineRecord, event: LifecycleEvent, decision: Decision) => void): void {
  fc.assert(
    fc.property(anyMachine, anyEvent, (record, event) => check(record, event, after(record, event))),
    { numRuns: longOr(5000, 1000) },
  );
}

function deepFreeze<T>(value: T): T {
  for (const member of Object.values(value as object))
    if (typeof member === "object" && member !== null) deepFreeze(member);
  return Object.freeze(value);
}

describe("every decision", () => {
  test("is made: for each state, with each event, also in a machine that holds what it should not", () => {
    for (const state of STATES)
      for (const snapshot of [null, machine("suspended").snapshot])
        for (const event of EVENTS)
          expect(after(machine(state, { snapshot }), event), `${state}, ${event.type}`).toMatchObject({
            record: { id: "m1" },
            tell: {},
          });
  });

  test("leaves its input alone, and is the same for the same input", () => {
    const context = deepFreeze({ ...CONTEXT });
    fc.assert(
      fc.property(anyMachine, anyEvent, (record, event) => {
        const before = structuredClone(record);
        const decision = after(deepFreeze(record), deepFreeze(event), context);
        expect(record).toEqual(before);
        expect(after(before, event, context)).toEqual(decision);
      }),
      { numRuns: longOr(5000, 1000) },
    );
  });

  test("that enters a passing state, or `restarting`, begins exactly the work that leaves it", () => {
    always((record, event, { record: next, effect }) => {
      if (next.state === record.state) return;
      const work = WORK[next.state];
      if (work !== undefined) expect(effect?.type).toBe(work);
      else expect([undefined, "discard_snapshots"], event.type).toContain(effect?.type);
    });
  });

  test("that stays in a state begins no work that would leave it a second time", () => {
    always((record, event, { record: next, effect }) => {
      // A start that was killed is made again, and recovery begins again what the last platform was working on.
      if (next.state !== record.state || event.type === "taken_over" || event.type === "start_killed") return;
      // A stop on terms of its own takes the place of the one under way, whose outcome no longer counts.
      if (effect?.type === "halt") {
        expect([record.state, "terms" in event]).toEqual(["stopping", true]);
        return;
      }
      expect([undefined, "cancel_capture", "discard_snapshots", "take_over"]).toContain(effect?.type);
    });
  });

  test("about a stop keeps its terms in the work that it begins, and in nothing that is stored", () => {
    always((record, event, { record: next, effect, tell }) => {
      const terms = "terms" in event ? event.terms : undefined;
      if (effect?.type === "halt" && terms !== undefined) expect(effect.terms).toMatchObject(terms);
      else if (terms !== undefined && tell.refusal === undefined && record.state !== "stopping")
        expect(next.state).not.toBe("stopping");
      expect(Object.values(next)).not.toContain(terms ?? "none");
      if (record.state !== "stopping" && effect?.type === "halt") expect(effect.hurried).toBeUndefined();
    });
  });

  test("captures in `suspending` only", () => {
    always((_record, _event, { record: next, effect }) => {
      expect(next.capturing !== null, next.state).toBe(next.state === "suspending");
      if (effect?.type === "capture") expect(effect.generation).toBe(next.capturing);
    });
  });

  test("keeps a snapshot only where its guest has not run", () => {
    always((record, _event, { record: next }) => {
      if (next.snapshot === null) return;
      expect(MAY_HOLD_SNAPSHOT).toContain(next.state);
      // A failed machine may keep a snapshot that did not run; one whose guest ran never gets it back.
      if (["running", "created", "stopped", "restarting"].includes(record.state))
        expect(next.state, `from ${record.state}`).toBe(record.state);
    });
  });

  test("that only refuses, or changes nothing, does nothing", () => {
    always((record, _event, { record: next, effect, tell }) => {
      if (tell.refusal !== undefined) {
        expect(next).toBe(record);
        expect({ effect, tell }).toEqual({ effect: null, tell: { refusal: tell.refusal } });
      }
      if (tell.history !== undefined || tell.followers === true) expect(next).not.toBe(record);
    });
  });

  test("about the state is in the history, with the states that it led from and to", () => {
    always((record, _event, { record: next, tell }) => {
      if (next.state !== record.state) expect(tell).toMatchObject({ followers: true, history: expect.any(Object) });
      if (tell.history === undefined) return;
      expect(tell.history).toMatchObject({ from: record.state, to: next.state, at: CONTEXT.now.toISOString() });
      expect(next.updatedAt).toBe(tell.history.at);
    });
  });

  test("ends streams into the guest exactly where it comes to rest without guest and snapshot", () => {
    always((record, _event, { record: next, tell }) => {
      const mayHaveGuest = next.state === "running" || (!isResting(next.state) && next.state !== "destroyed");
      if (tell.memoryGone)
        expect({ mayHaveGuest, snapshot: next.snapshot }).toEqual({ mayHaveGuest: false, snapshot: null });
      else if (next.state !== record.state) expect(mayHaveGuest || next.snapshot !== null, next.state).toBe(true);
    });
  });

  test("has the writable layer reset only by a stop, an update or a new start from scratch, never because of idleness", () => {
    always((record, event, { record: next }) => {
      if (next.resetLayer && !record.resetLayer) expect(["halted", "updated"]).toContain(event.type);
      const { keepLayer = null, config } = record;
      if (event.type === "halted" && next.state !== record.state && (keepLayer !== null || config.keep_layer === true))
        expect(next.resetLayer).toBe(record.resetLayer);
    });
  });

  test("about an idle machine that cannot be suspended keeps its files, or the machine awake, and says why", () => {
    const idle = fc.constantFrom<Extract<Command, { type: "sleep" }>>(
      { type: "sleep", how: "suspend" },
      { type: "sleep", how: "suspend", otherwise: "off" },
    );
    fc.assert(
      fc.property(anyMachine, idle, (record, sleep) => {
        const { record: next, effect, tell } = after({ ...record, config: LARGE }, sleep);
        if (record.state !== "suspending") expect(next.state).not.toBe("suspending");
        if (sleep.otherwise === "off") {
          expect({ state: next.state, effect }).toEqual({ state: record.state, effect: null });
          if (record.state === "running") expect(next.notSuspended).toMatchObject({ by: "proxy" });
        } else if (record.state === "running") {
          expect(tell.history?.details).toMatchObject({
            keep_layer: true,
            reason: expect.stringContaining("memory is 4096 MB"),
          });
          const halted = after(next, { type: "halted" }).record;
          expect(halted).toMatchObject({ state: "stopped", resetLayer: record.resetLayer, keepLayer: null });
        }
      }),
    );
  });

  test("marks a machine as suspended by a drain only where it is, and until someone else decides about it", () => {
    always((record, event, { record: next }) => {
      if (next.drained === true) expect(DRAINED_STATES).toContain(next.state);
      if (next.drained === true && record.drained !== true)
        expect(event).toMatchObject({ type: "suspend", drain: true });
      if (record.drained === true && next.state === "suspended" && event.type !== "drain_over")
        expect(next.drained, "a reboot would forget it").toBe(true);
      if (event.type === "drain_over") expect(next.drained ?? false).toBe(false);
    });
  });

  test("destroys a machine by itself only with auto_destroy, after the reported end of its app or a client's stop", () => {
    always((record, event, { record: next, effect }) => {
      if (next.goal === "destroyed") expect(next.state).toBe("stopping");
      if (next.goal === "destroyed" && record.goal !== "destroyed") {
        expect(record.config.auto_destroy).toBe(true);
        const ended = event.type === "app_ended" || (event.type === "taken_over" && event.exit !== undefined);
        expect(ended || (event.type === "stop" && event.wanted === true), event.type).toBe(true);
      }
      if (effect?.type !== "remove" || record.state === "destroying" || event.type === "destroy") return;
      expect([record.state, record.goal]).toEqual(["stopping", "destroyed"]);
    });
  });

  test("about a machine that destroys itself changes that only if its guest cannot be ended", () => {
    always((record, event, { record: next }) => {
      if (record.goal !== "destroyed" || next.state === "destroying") return;
      if (next.state !== "stopping") expect([event.type, next.state]).toEqual([expect.anything(), "failed"]);
      else expect(next.goal).toBe("destroyed");
    });
  });

  test("says of a machine that it was not suspended only while it may have a guest", () => {
    always((_record, _event, { record: next }) => {
      if ((next.notSuspended ?? null) !== null) expect(AWAKE_STATES).toContain(next.state);
    });
  });

  test("that leaves a goal behind is made where something is still to come", () => {
    always((_record, _event, { record: next }) => {
      if (next.goal !== null) expect(isResting(next.state) || next.state === "destroyed", next.state).toBe(false);
    });
  });
});

describe("the moves as a whole", () => {
  const moves = [...listedMoves()].map((text) => text.split(">") as [MachineState, MachineState]);

  test("nothing leaves destroyed, and every passing state can be left", () => {
    expect(moves.filter(([from]) => from === "destroyed")).toEqual([]);
    for (const state of STATES.filter((one) => !isResting(one) && one !== "destroyed"))
      expect(
        moves.some(([from, to]) => from === state && (isResting(to) || to === "destroyed")),
        state,
      ).toBe(true);
  });

  test("a guest begins to run only by way of starting, or by running on after a suspend that was cancelled", () => {
    const into = moves.filter(([, to]) => to === "running").map(([from]) => from);
    expect(into.toSorted()).toEqual(["starting", "suspending"]);
  });
});
