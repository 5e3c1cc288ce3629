import { describe, expect, test } from "vitest";
import { COMMANDS, listedMoves, OUTCOMES, transition } from "../../src/machines/lifecycle.ts";
import { isResting, type MachineState, STATES } from "../../src/domain/machine.ts";

const idle = { goal: null } as const;
const answerOf = (state: MachineState, event: (typeof COMMANDS)[number] | (typeof OUTCOMES)[number], context = {}) =>
  transition(state, event, { ...idle, ...context });

describe("what people ask for", () => {
  test.each([
    ["running", "suspend", "suspending"],
    ["suspended", "start", "starting"],
    ["suspended", "stop", "stopping"],
    ["running", "stop", "stopping"],
    ["stopped", "start", "starting"],
    ["created", "start", "starting"],
    ["failed", "start", "starting"],
    ["suspended", "update", "updating"],
    ["running", "update", "updating"],
    ["suspended", "destroy", "destroying"],
  ] as const)("a %s machine and %s: %s", (state, command, to) => {
    expect(answerOf(state, command)).toMatchObject({ kind: "move", to });
  });

  test.each([
    ["running", "start"],
    ["suspended", "suspend"],
    ["stopped", "stop"],
    ["starting", "start"],
    ["stopping", "stop"],
    ["destroyed", "destroy"],
  ] as const)("a %s machine and %s: accepted, nothing changes", (state, command) => {
    expect(answerOf(state, command)).toEqual({ kind: "stay", goal: null });
  });

  test("a machine that runs is destroyed only with force", () => {
    expect(answerOf("running", "destroy")).toMatchObject({ kind: "refuse", code: "failed_precondition" });
    expect(answerOf("running", "destroy", { force: true })).toMatchObject({ kind: "move", to: "destroying" });
  });

  test("a start while suspending cancels the capture, and is kept should the capture be done already", () => {
    expect(answerOf("suspending", "start")).toEqual({ kind: "stay", goal: "running", effect: "cancel_capture" });
    expect(answerOf("suspending", "capture_cancelled", { goal: "running" })).toMatchObject({
      kind: "move",
      to: "running",
    });
    expect(answerOf("suspending", "captured", { goal: "running" })).toMatchObject({
      kind: "move",
      to: "starting",
      effect: "boot",
    });
  });

  test("a start while stopping is kept until the stop is done", () => {
    expect(answerOf("stopping", "start")).toEqual({ kind: "stay", goal: "running" });
    expect(answerOf("stopping", "halted", { goal: "running" })).toMatchObject({ kind: "move", to: "starting" });
    expect(answerOf("stopping", "halted")).toMatchObject({ kind: "move", to: "stopped" });
  });

  test.each(["created", "suspended", "stopped", "failed"] as const)(
    "an update of a %s machine ends where it began",
    (from) => {
      expect(answerOf("updating", "updated", { from })).toMatchObject({ kind: "move", to: from });
    },
  );

  test("an update of a running machine ends in a start", () => {
    expect(answerOf("updating", "updated", { from: "running" })).toMatchObject({
      kind: "move",
      to: "starting",
      effect: "boot",
    });
  });
});

describe("the table as a whole", () => {
  test("every state answers every command", () => {
    for (const state of STATES)
      for (const command of COMMANDS) expect(answerOf(state, command).kind).toMatch(/^(move|stay|refuse)$/);
  });

  test("an outcome that nobody waits for changes nothing", () => {
    for (const outcome of OUTCOMES)
      expect(answerOf("stopped", outcome)).toMatchObject({ kind: "refuse", code: "aborted" });
  });

  test("nothing leaves destroyed, and every passing state can be left", () => {
    const moves = [...listedMoves()].map((text) => text.split(">") as [MachineState, MachineState]);
    expect(moves.filter(([from]) => from === "destroyed")).toEqual([]);
    for (const state of STATES) {
      if (isResting(state) || state === "destroyed") continue;
      expect(
        moves.some(([from, to]) => from === state && (isResting(to) || to === "destroyed")),
        state,
      ).toBe(true);
    }
  });

  test("a guest begins to run only by way of starting, or by going on after a suspend that was cancelled", () => {
    const intoRunning = [...listedMoves()].filter((text) => text.endsWith(">running"));
    expect(intoRunning.sort()).toEqual(["starting>running", "suspending>running"]);
  });
});
