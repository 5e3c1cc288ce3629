/** What a machine's page says and offers, as pure rules. */
import type { Activity, Machine, Session } from "@hibernaut/client";
import { describe, expect, test } from "vitest";
import { type ActionName, needsForce, refusalOf } from "../src/pages/machine/actions.ts";
import { endSentence } from "../src/pages/machine/console-session.ts";
import { egressText, leaseText, sandboxText } from "../src/pages/machine/limits-text.ts";
import { type Load, MOST_LOADS, withLoad } from "../src/pages/machine/samples.ts";
import { startSentence, stateSentence } from "../src/pages/machine/sentences.ts";
import { machine } from "./a-machine.ts";

const COPIES = ["fork", "template"] as const;
const ALL: readonly ActionName[] = ["start", "suspend", "stop", "restart", "cordon", ...COPIES, "update", "destroy"];
const session = (...scopes: Session["scopes"]) => ({ scopes });
const possible = (one: Pick<Machine, "state" | "suspend" | "config">, who = session("deploy")) =>
  ALL.filter((action) => refusalOf(action, one, who) === undefined);

describe("actions", () => {
  test.each<[Machine["state"], ActionName[]]>([
    ["running", ["suspend", "stop", "restart", "cordon", ...COPIES, "update", "destroy"]],
    ["suspended", ["start", "stop", "restart", "cordon", ...COPIES, "update", "destroy"]],
    ["stopped", ["start", "restart", "cordon", "update", "destroy"]],
    ["suspending", ["start", "stop", "restart", "cordon", "destroy"]],
    ["updating", ["start", "restart", "cordon", "destroy"]],
    ["destroying", []],
  ])("of a machine that is %s", (state, expected) => {
    expect(possible(machine({ state }))).toEqual(expected);
  });

  test("a machine that cannot be suspended says every reason", () => {
    const big = machine({ suspend: { eligible: false, reasons: ["it has too much memory", "its bundle is old"] } });
    expect(refusalOf("suspend", big, session("deploy"))).toBe(
      "It cannot be suspended: it has too much memory; its bundle is old.",
    );
  });

  test("forks and templates need a memory that can be kept, and no volumes", () => {
    const reasonFor = (one: Partial<Machine>) => {
      const [fork, template] = COPIES.map((name) => refusalOf(name, machine(one), session("deploy")));
      expect(template).toBe(fork);
      return fork;
    };
    expect(reasonFor({ state: "stopped" })).toBe(
      "Only a running or suspended machine has a memory that can be copied.",
    );
    expect(reasonFor({ state: "starting" })).toContain("still starting");
    expect(reasonFor({ config: { image: "i", mounts: [{ volume: "data", path: "/data" }] } })).toContain("has volumes");
    const suspend = { eligible: false, reasons: ["it has too much memory"] };
    expect(reasonFor({ state: "suspended", suspend })).toBe("It cannot be suspended: it has too much memory.");
  });

  test("a token gets what its scopes allow, and is told what it lacks", () => {
    expect(possible(machine({ state: "suspended" }), session("exec"))).toEqual(["start"]);
    expect(possible(machine({}), session("read"))).toEqual([]);
    expect(possible(machine({}), session("admin"))).toContain("destroy");
    expect(refusalOf("stop", machine({}), session("read"))).toBe("This needs a token with the scope deploy.");
  });

  test("destroying what runs has to be told", () => {
    expect(["running", "starting", "suspending", "updating"].map((state) => needsForce({ state } as Machine))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(["suspended", "stopped", "failed", "created"].some((state) => needsForce({ state } as Machine))).toBe(false);
  });
});

describe("limits", () => {
  test("a sandbox says where it is from, and what becomes of it", () => {
    const times = { started_at: "2026-01-31T14:30:00Z", ends_at: "2026-01-31T15:30:00Z", timeout_s: 3600 };
    const sandbox = {
      template: "base",
      metadata: { task: "17" },
      ...times,
      on_timeout: "pause",
      auto_resume: true,
    } as const;
    expect(sandboxText(machine({ sandbox }))).toMatch(/^from template base, paused at .*2026.*, task=17$/);
    expect(sandboxText(machine({}))).toBeUndefined();
  });

  test.each([
    [{ default: "deny" as const, allow: ["api.example.com", "192.0.2.0/24"] }, "only api.example.com, 192.0.2.0/24"],
    [{ default: "deny" as const }, "nothing"],
    [{ deny: ["10.0.0.0/8"], allow: ["10.0.0.7"] }, "anything except 10.0.0.0/8, but to 10.0.0.7"],
    [undefined, undefined],
  ])("a machine with the rules %j connects to %s", (egress, text) => {
    expect(egressText(machine({ config: { image: "i", ...(egress && { network: { egress } }) } }))).toBe(text);
  });
});

test("a lease says whose it is, for what and until when, and how it ends, for as long as it lives", () => {
  const lease = { owner: "tok_1", description: "deploy 7", expires_at: "2026-01-31T14:30:00Z" };
  const end = Date.parse(lease.expires_at);
  expect(leaseText(machine({ lease }), end - 1)).toMatch(
    /^Token tok_1 has a lease on it \(deploy 7\) until .*2026.*`hibernaut machine lease clear a1 --app shop`/,
  );
  expect(leaseText(machine({ lease: { ...lease, description: "" } }), 0)).toContain("a lease on it until");
  expect(leaseText(machine({ lease }), end)).toBeUndefined();
  expect(leaseText(machine({}), 0)).toBeUndefined();
});

describe("sentences", () => {
  const awake = { message: "It was used 3 s ago. It sleeps in 57 s." } as NonNullable<Activity["awake"]>;
  const service = { internal_port: 8080 };

  test("a running machine says why it is awake, and that it cannot be suspended", () => {
    expect(stateSentence(machine({}), awake)).toBe(awake.message);
    const suspend = { eligible: false, reasons: ["it has too much memory"] };
    expect(stateSentence(machine({ suspend }), awake)).toContain("It cannot be suspended: it has too much memory.");
  });

  test("a machine that does not run says what wakes it", () => {
    const asleep = { state: "suspended" } as const;
    expect(stateSentence(machine(asleep), null)).toContain("Start wakes it.");
    expect(stateSentence(machine({ ...asleep, config: { image: "i", services: [service] } }), null)).toContain(
      "A request to its app wakes it",
    );
    expect(stateSentence(machine({ ...asleep, cordoned: true }), null)).toContain("requests do not wake it");
    expect(stateSentence(machine({ state: "failed", state_reason: "no memory." }), null)).toMatch(
      /^It failed: no memory\. /,
    );
  });

  test("a start says what it was and why it was cold", () => {
    const boot = { at: "", duration_ms: 307 };
    expect(startSentence({ ...boot, kind: "warm", reason: "snapshot" })).toContain("was warm");
    expect(startSentence({ ...boot, kind: "resume", reason: "snapshot" })).toBe(
      "was a resume from its snapshot. It took 307 ms.",
    );
    expect(startSentence({ ...boot, kind: "cold", reason: "snapshot_missing: memory" })).toBe(
      "was cold, because a file of the snapshot was missing (memory). It took 307 ms.",
    );
    expect(startSentence({ ...boot, kind: "cold", reason: "something_new" })).toContain("because something_new");
  });

  test("a console says how it ended", () => {
    const exit = { exit_code: 3, exit_signal: 0, timed_out: false, error: null };
    expect(endSentence({ kind: "ended", exit }, "running")).toBe("The shell has ended with exit code 3.");
    expect(endSentence({ kind: "ended", exit: { ...exit, exit_signal: 9 } }, "running")).toContain("signal 9");
    expect(endSentence({ kind: "ended", exit: { ...exit, error: "there is no /bin/sh." } }, "running")).toBe(
      "The shell ended: there is no /bin/sh.",
    );
    expect(endSentence({ kind: "refused" }, "suspended")).toContain("Start it first");
    expect(endSentence({ kind: "lost" }, "running")).toContain("connection was lost");
  });
});

describe("CPU and memory over time", () => {
  const process = (cpu: number) => ({ cpu_ms: cpu, resident_bytes: 1000 });

  test("CPU is what was used between two readings", () => {
    const [load] = withLoad([], { at: 1000, process: process(500) }, { at: 3000, process: process(1500) });
    expect(load).toEqual({ at: 3000, cpuPercent: 50, memoryBytes: 1000 });
  });

  test("a sleep and another process are gaps, not peaks", () => {
    const cpu = (before: number | undefined, now: number | undefined) => {
      const at = (time: number, ms: number | undefined) => ({
        at: time,
        process: ms === undefined ? null : process(ms),
      });
      return withLoad([], at(0, before), at(2000, now)).at(-1)?.cpuPercent;
    };
    expect([cpu(500, undefined), cpu(undefined, 500), cpu(9000, 10)]).toEqual([null, null, null]);
    expect(withLoad([], undefined, { at: 0, process: process(1) })[0]?.cpuPercent).toBeNull();
  });

  test("what is kept is bounded, and the newest stays", () => {
    let loads: Load[] = [];
    for (let at = 0; at < MOST_LOADS + 100; at++) loads = withLoad(loads, undefined, { at, process: null });
    expect(loads).toHaveLength(MOST_LOADS);
    expect(loads.at(-1)?.at).toBe(MOST_LOADS + 99);
  });
});
