/** What people, and the proxy, may ask of a machine. */
import type { MachineRecord, MachineState, Prewarm } from "@hibernaut/domain/machine";
import { describe, expect, test } from "vitest";
import { after, CONTEXT, machine, NOW, PENDING, PREWARM, SNAPSHOT } from "../../../platform/test/helpers/decisions.ts";
import type { Command, LifecycleEvent } from "../../src/decide/index.ts";

const UPDATE: Command = { type: "update", config: { image: "app:2" }, imageDigest: "sha256:2" };

describe("a command that the state allows", () => {
  test.each<[MachineState, Command, MachineState, object]>([
    ["running", { type: "suspend" }, "suspending", { type: "capture", generation: "NEW-ID" }],
    ["suspended", { type: "start" }, "starting", { type: "boot", restedSince: "2026-01-01T00:00:05Z", attempt: 1 }],
    ["suspended", { type: "stop" }, "stopping", { type: "halt" }],
    ["running", { type: "stop" }, "stopping", { type: "halt" }],
    ["stopped", { type: "start" }, "starting", { type: "boot", restedSince: "2026-01-01T00:00:05Z", attempt: 1 }],
    ["created", { type: "start" }, "starting", { type: "boot", restedSince: null, attempt: 1 }],
    ["failed", { type: "start" }, "starting", { type: "boot", restedSince: "2026-01-01T00:00:05Z", attempt: 1 }],
    ["suspended", UPDATE, "updating", { type: "apply_update", patient: false }],
    ["running", UPDATE, "updating", { type: "apply_update", patient: false }],
    ["stopping", UPDATE, "updating", { type: "apply_update", patient: true }],
    ["suspended", { type: "destroy" }, "destroying", { type: "remove" }],
  ])("%s, %o: %s", (state, command, to, effect) => {
    const { record, effect: work, tell } = after(machine(state), command);
    expect(record.state).toBe(to);
    expect(work).toEqual(effect);
    const at = NOW.toISOString();
    expect(record.updatedAt).toBe(at);
    expect(tell).toEqual({
      history: { at, type: command.type, from: state, to, details: {} },
      followers: true,
    });
  });

  test("the history says who asked", () => {
    const { tell } = after(machine("running"), { type: "stop", details: { by: "itself" } });
    expect(tell.history?.details).toEqual({ by: "itself" });
  });

  test.each<[MachineState, Command]>([
    ["running", { type: "start" }],
    ["suspended", { type: "suspend" }],
    ["suspending", { type: "suspend" }],
    ["stopped", { type: "stop" }],
    ["starting", { type: "start" }],
    ["stopping", { type: "stop" }],
    ["destroyed", { type: "destroy" }],
    ["stopped", { type: "discard_snapshot", reason: "secrets_changed" }],
  ])("%s, %o: accepted, and nothing changes", (state, command) => {
    const record = machine(state);
    expect(after(record, command)).toEqual({ record, effect: null, tell: {} });
    expect(after(record, command).record).toBe(record);
  });
});

describe("a command that the state does not allow", () => {
  test.each<[MachineState, Command, string, RegExp]>([
    ["created", { type: "stop" }, "failed_precondition", /Machine m1 is created: it has never run\./],
    ["stopped", { type: "suspend" }, "failed_precondition", /only a running machine can be suspended/],
    ["starting", { type: "suspend" }, "failed_precondition", /wait for running/],
    ["suspending", UPDATE, "aborted", /being suspended; wait/],
    ["updating", { type: "stop" }, "aborted", /being updated; wait/],
    ["updating", { type: "restart", terms: { signal: "SIGKILL" } }, "aborted", /being updated; wait/],
    ["starting", { type: "discard_snapshot", reason: "" }, "aborted", /being started; wait/],
    ["destroying", { type: "start" }, "aborted", /being destroyed; wait/],
    ["destroyed", { type: "start" }, "not_found", /it was destroyed/],
  ])("%s, %o: %s", (state, command, code, message) => {
    const record = machine(state);
    const { tell, ...rest } = after(record, command);
    expect(rest).toEqual({ record, effect: null });
    expect(tell).toEqual({ refusal: expect.objectContaining({ code, details: { machine_id: "m1", state } }) });
    expect(tell.refusal?.message).toMatch(message);
  });

  test.each(["starting", "running", "suspending", "updating"] as const)("%s is destroyed with force only", (state) => {
    expect(after(machine(state), { type: "destroy" }).tell.refusal?.code).toBe("failed_precondition");
    expect(after(machine(state), { type: "destroy", force: true }).record.state).toBe("destroying");
  });
});

describe("a start that comes during something else", () => {
  test("cancels a capture, and is remembered in case the capture is done already", () => {
    const { record, effect } = after(machine("suspending"), { type: "start" });
    expect(record).toMatchObject({ state: "suspending", goal: "running", capturing: "G2" });
    expect(effect).toEqual({ type: "cancel_capture" });
    expect(after(record, { type: "start" }).effect).toBeNull();
    expect(after(record, { type: "suspend" }).tell.refusal?.message).toMatch(/being woken by a start/);
    expect(after(record, { type: "capture_cancelled", reason: "" }).record).toMatchObject({
      state: "running",
      goal: null,
    });
    const captured = after(record, { type: "captured", snapshot: SNAPSHOT });
    expect(captured.record).toMatchObject({ state: "starting", snapshot: SNAPSHOT, goal: null });
    expect(captured.effect).toMatchObject({ type: "boot" });
  });

  test.each(["stopping", "updating"] as const)("waits while the machine is %s", (state) => {
    const { record, effect, tell } = after(machine(state), { type: "start" });
    expect(record).toMatchObject({ state, goal: "running" });
    expect(effect).toBeNull();
    expect(tell).toEqual({ history: expect.objectContaining({ type: "start", from: state, to: state }) });
    const done = after(record, state === "stopping" ? { type: "halted" } : { type: "updated" });
    expect(done.record).toMatchObject({ state: "starting", goal: null });
  });

  test("is taken back by a stop", () => {
    const { record } = after(machine("stopping", { goal: "running" }), { type: "stop" });
    expect(record.goal).toBeNull();
  });
});

describe("someone who looks after a machine", () => {
  const crash = { at: "", reason: "", exit_code: 1, at_start: true, attempt: 2, max_attempts: 10, retry_at: null };
  const crashed = machine("stopped", { restarts: 2, crash });

  test("gives it all its restarts again; a request at the proxy does not", () => {
    expect(after(crashed, { type: "start" }).record).toMatchObject({ restarts: 0, crash: null });
    expect(after(crashed, { type: "start", unattended: true }).record).toMatchObject({ restarts: 2, crash: null });
  });

  test("also while it is on its way already, which those who follow it hear", () => {
    const record = machine("starting", { restarts: 2, crash });
    const decision = after(record, { type: "start" });
    expect(decision.record).toMatchObject({ state: "starting", restarts: 0, crash: null, updatedAt: record.updatedAt });
    expect(decision.tell).toEqual({ followers: true });
  });
});

describe("a suspend", () => {
  const large = machine("running", { config: { image: "app:1", guest: { memory_mb: 4096 } } });
  const oldAgent = { ...CONTEXT, limits: { ...CONTEXT.limits, agentProtocol: 0 } };

  test("of a machine that is not eligible is refused with every reason", () => {
    const { tell, record } = after(large, { type: "suspend" }, oldAgent);
    expect(record).toBe(large);
    expect(tell.refusal).toMatchObject({ code: "failed_precondition", details: { machine_id: "m1" } });
    expect(tell.refusal?.details?.reasons).toHaveLength(2);
    expect(tell.refusal?.message).toMatch(
      /^Machine m1 cannot be suspended: memory is 4096 MB .*; its agent speaks protocol 0/,
    );
  });

  test("that changes nothing needs no eligibility", () => {
    expect(after({ ...large, state: "suspended" }, { type: "suspend" }).tell).toEqual({});
  });
});

describe("an idle machine", () => {
  const details = { by: "proxy", idle_ms: 300_000 };

  test.each(["suspend", "stop"] as const)("is put to sleep by a %s", (how) => {
    const { tell, effect } = after(machine("running"), { type: "sleep", how, details });
    expect(tell.history).toMatchObject({ type: how, details });
    expect(effect?.type).toBe(how === "suspend" ? "capture" : "halt");
  });

  test("that cannot be suspended is stopped, and its history says why", () => {
    const large = machine("running", { config: { image: "app:1", guest: { memory_mb: 4096 } } });
    const { tell, record } = after(large, { type: "sleep", how: "suspend", details });
    expect(record.state).toBe("stopping");
    expect(tell.history).toMatchObject({
      type: "stop",
      details: { ...details, reason: expect.stringMatching(/^it cannot be suspended: memory is 4096 MB/) },
    });
  });
});

describe("an update", () => {
  test("is stored with a new version and the current guest bundle before it begins", () => {
    const { record } = after(machine("stopped", { bundleVersion: "old" }), UPDATE, { ...CONTEXT, id: "V2" });
    expect(record).toMatchObject({ version: "V1", bundleVersion: "old", config: { image: "app:1" } });
    expect(record.pending).toEqual({
      config: { image: "app:2" },
      version: "V2",
      imageDigest: "sha256:2",
      bundleVersion: "bundle-1",
      from: "stopped",
      requestedAt: NOW.toISOString(),
    });
  });
});

describe("a snapshot that must not be resumed", () => {
  const discard: Command = { type: "discard_snapshot", reason: "secrets_changed" };

  test.each(["suspended", "failed"] as const)("is gone at once from a %s machine, whose state stays", (state) => {
    const record = machine(state, { snapshot: SNAPSHOT, stateReason: "why", restarts: 1 });
    const { record: next, effect, tell } = after(record, discard);
    const updatedAt = NOW.toISOString();
    expect(next).toEqual({ ...record, snapshot: null, coldReason: "secrets_changed", updatedAt });
    expect(effect).toEqual({ type: "discard_snapshots", memory: true });
    expect(tell).toMatchObject({
      history: { type: "discard_snapshot", details: { reason: "secrets_changed" } },
      followers: true,
      memoryGone: true,
    });
  });
});

describe("a move to the newest guest bundle", () => {
  const older = { bundleVersion: "bundle-0" };
  const MOVE = { type: "move_bundle" } as const;

  test("changes nothing in a machine that has it, not even the version", () => {
    for (const state of ["created", "running", "suspended", "stopped", "failed"] as const) {
      const record = machine(state);
      expect(after(record, MOVE)).toEqual({ record, effect: null, tell: {} });
    }
  });

  test.each(["created", "running", "stopped", "failed"] as const)("is an update of a machine that is %s", (state) => {
    const record = machine(state, older);
    const { config, imageDigest } = record;
    expect(after(record, MOVE)).toEqual(after(record, { type: "update", config, imageDigest }));
  });

  test.each(["suspended", "failed", "starting"] as const)(
    "waits for the next cold start if it is %s and has a snapshot",
    (state) => {
      const record = machine(state, { ...older, snapshot: SNAPSHOT });
      const { record: next, effect, tell } = after(record, MOVE);
      expect(next).toEqual({ ...record, bundleMove: { version: "NEW-ID" }, updatedAt: NOW.toISOString() });
      expect(effect).toBeNull();
      expect(tell.history).toMatchObject({ type: "update", from: state, to: state });
      expect(after(next, MOVE), "once is enough").toEqual({ record: next, effect: null, tell: {} });
      const moved = { version: "NEW-ID", bundleVersion: "bundle-1" };
      const cold = after({ ...next, state: "starting" }, { type: "cold_start", reason: "stopped", moved }).record;
      expect(cold).toMatchObject({ ...moved, bundleMove: null });
    },
  );

  test("is part of every other update", () => {
    const waiting = machine("suspended", { ...older, bundleMove: { version: "V9" } });
    const updating = after(waiting, UPDATE).record;
    expect(after(updating, { type: "updated" }).record).toMatchObject({ bundleVersion: "bundle-1", bundleMove: null });
  });

  test("is refused where an update is", () => {
    for (const state of ["suspending", "updating", "destroying", "destroyed"] as const)
      expect(after(machine(state, older), MOVE).tell.refusal, state).toBeDefined();
  });
});

describe("a prewarm", () => {
  const prewarm = (record: MachineRecord, event: LifecycleEvent) => after(record, event).record.prewarm ?? null;

  test.each<[MachineState, string | null]>([
    ["suspended", "pending"],
    ["stopped", "pending"],
    ["created", "pending"],
    ["running", null],
    ["starting", null],
    ["restarting", null],
    ["failed", null],
  ])("comes with the update of a machine that rests: %s", (state, status) => {
    expect(prewarm(machine(state), { ...UPDATE, prewarm: "prepared" })?.status ?? null).toBe(status);
  });

  test("is forgotten with the next update that asks for none", () => {
    expect(prewarm(machine("suspended", { prewarm: { ...PREWARM, status: "done" } }), UPDATE)).toBeNull();
  });

  test.each<[MachineState, Command, Partial<Prewarm>]>([
    ["starting", { type: "start", unattended: true, details: { by: "proxy" } }, { reason: "a request came first" }],
    ["running", { type: "start" }, { reason: "a start came first" }],
    ["running", { type: "suspend" }, { reason: "a suspend came first" }],
    ["starting", { type: "stop" }, { reason: "a stop came first" }],
  ])("%s, is taken by %o", (state, command, expected) => {
    const { record, tell } = after(machine(state, { prewarm: PREWARM }), command);
    expect(record.prewarm).toEqual({ ...PREWARM, status: "taken", ...expected });
    expect(tell.followers, "a client that waits for its end hears of it").toBe(true);
  });

  test("continues when the platform suspends the machine as planned, and is done with the snapshot", () => {
    const suspending = after(machine("running", { prewarm: PREWARM }), { type: "suspend", details: { by: "prewarm" } });
    expect(suspending.record).toMatchObject({ state: "suspending", prewarm: PREWARM });
    const done = after(suspending.record, { type: "captured", snapshot: SNAPSHOT });
    expect(done.record).toMatchObject({ state: "suspended", prewarm: { status: "done" } });
  });

  test("makes an update boot what would have stayed asleep", () => {
    const { record, effect } = after(
      machine("updating", { pending: { ...PENDING, from: "suspended" }, prewarm: PREWARM }),
      {
        type: "updated",
      },
    );
    expect([record.state, effect?.type]).toEqual(["starting", "boot"]);
  });
});

test("a start for a request need not be on the disk before it begins: a power cut ends the request, too", () => {
  expect(after(machine("suspended"), { type: "start", unattended: true }).unsynced).toBe(true);
  expect(after(machine("suspended"), { type: "start" }).unsynced).toBeUndefined();
});
