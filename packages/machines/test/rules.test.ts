import { CURRENT_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import type { Goal, MachineRecord, MachineState } from "@hibernaut/domain/machine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UserNetwork } from "../../network/src/user.ts";
import { suspendEligibility } from "../src/eligibility.ts";
import { commandOf, environmentOf, stopOf } from "../src/environment.ts";
import { newMachineId, newMachineName, newUlid } from "../src/identity.ts";
import { afterEnd, isKnownToCrash, restAfterUpdate, restartDelay, restartsInARow } from "../src/restart.ts";

const image = {
  entrypoint: ["node"],
  cmd: ["app.js"],
  env: ["PATH=/bin", "EMPTY=", "EQUATION=a=b"],
  user: "",
  workingDir: "/",
};

describe("the command of a machine", () => {
  test.each([
    ["nothing set: the image's", {}, ["node", "app.js"]],
    ["cmd replaces the image's cmd", { cmd: ["other.js", "-v"] }, ["node", "other.js", "-v"]],
    ["a new entrypoint drops the image's cmd", { entrypoint: ["sh"] }, ["sh"]],
    ["both", { entrypoint: ["sh"], cmd: ["-c", "true"] }, ["sh", "-c", "true"]],
    ["exec replaces everything", { exec: ["ls"], cmd: ["x"] }, ["ls"]],
  ])("%s", (_what, init, command) => {
    expect(commandOf({ image: "i", init }, image)).toEqual(command);
  });
});

test("the environment: the platform's variables override secrets, which override the machine's, which override the image's", () => {
  const machine = {
    id: "m1",
    app: "shop",
    version: "V",
    region: "r",
    config: { image: "i", env: { PATH: "/mine", MODE: "mine", FLY_REGION: "forged" } },
  };
  const network = { address: "10.0.2.15/24", gateway: "", dns: "", hosts: [] };
  const secrets = { MODE: "secret", HIBERNAUT_REGION: "forged" };
  expect(environmentOf(machine as unknown as MachineRecord, image, network, secrets)).toMatchObject({
    PATH: "/mine",
    MODE: "secret",
    EMPTY: "",
    EQUATION: "a=b",
    FLY_REGION: "r",
    HIBERNAUT_REGION: "r",
    HIBERNAUT_PRIVATE_IP: "10.0.2.15",
    HIBERNAUT_VM_MEMORY_MB: "256",
  });
});

test("the stop signal: the machine's, otherwise the image's by name or number, otherwise SIGTERM", () => {
  expect(stopOf({ image: "i" }, undefined)).toEqual({ signal: 15, graceMs: 5000 });
  expect(stopOf({ image: "i" }, { stopSignal: "SIGQUIT" }).signal).toBe(3);
  expect(stopOf({ image: "i" }, { stopSignal: "9" }).signal).toBe(9);
  expect(stopOf({ image: "i", stop_config: { signal: "SIGINT", timeout: 1 } }, { stopSignal: "9" })).toEqual({
    signal: 2,
    graceMs: 1000,
  });
});

describe("suspending requires", () => {
  const limits = { suspendMaxMemoryMb: 2048, currentBundle: "b2", agentProtocol: CURRENT_PROTOCOL };
  const machine = (config: object) => ({ config: { image: "i", ...config } });

  test("nothing more than a small machine whose agent the platform can talk to", () => {
    expect(suspendEligibility(machine({}), limits)).toEqual({ eligible: true, reasons: [] });
    expect(
      suspendEligibility(machine({ guest: { memory_mb: 2048 }, init: { swap_size_mb: 4096 } }), limits).eligible,
      "swap is on a disk that rests with the machine",
    ).toBe(true);
  });
});

describe("restarts", () => {
  const config = (policy?: "no" | "on-failure" | "always", max_retries?: number) => ({
    image: "i",
    restart: { ...(policy && { policy }), ...(max_retries !== undefined && { max_retries }) },
  });

  test.each([
    ["on-failure", true, 250],
    ["on-failure", false, null],
    ["always", false, 250],
    ["no", true, null],
  ] as const)("%s, failed %s: %s", (policy, failed, delay) => {
    expect(restartDelay(config(policy), 0, { failed })).toBe(delay);
  });

  test("the wait doubles up to 30 seconds, and the attempts end", () => {
    const delays = Array.from({ length: 11 }, (_, retries) => restartDelay(config(), retries, { failed: true }));
    expect(delays).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, null]);
    expect(restartDelay(config("always", 0), 0, { failed: true })).toBeNull();
  });

  test("an app that ran for a minute starts with a clean slate", () => {
    expect(restartsInARow(7, 59_999)).toBe(7);
    expect(restartsInARow(7, 60_000)).toBe(0);
  });

  describe("after an app has ended", () => {
    const at = new Date("2026-01-01T00:00:10Z");
    const exit = (code: number) => ({ exit: { code, signal: 0, oom: false }, reason: `code ${code}`, at });
    const record = (more: object = {}) => ({
      config: config(),
      state: "running" as const,
      restarts: 0,
      lastBoot: { kind: "cold" as const, reason: "", at: "2026-01-01T00:00:00Z", duration_ms: 1 },
      ...more,
    });

    test("the next attempt is recorded with its time", () => {
      expect(afterEnd(record({ restarts: 2 }), exit(7))).toEqual({
        restarts: 3,
        crash: {
          at: "2026-01-01T00:00:10.000Z",
          reason: "code 7",
          exit_code: 7,
          at_start: false,
          attempt: 3,
          max_attempts: 10,
          retry_at: "2026-01-01T00:00:11.000Z",
        },
      });
    });

    test("an app that ended well and rests has no crash", () => {
      expect(afterEnd(record(), exit(0)).crash).toBeNull();
    });

    test("an app without attempts left keeps its last attempt, without a time", () => {
      const { restarts, crash } = afterEnd(record({ restarts: 10 }), exit(1));
      expect(restarts).toBe(10);
      expect(crash).toMatchObject({ attempt: 10, max_attempts: 10, retry_at: null });
    });

    test("a virtual machine that disappeared has no exit code", () => {
      expect(afterEnd(record(), { exit: undefined, reason: "gone", at }).crash).toMatchObject({ exit_code: null });
    });

    test.each([
      ["the first failure of an app that ran may be an accident", "running", 0, false],
      ["a second one in a row is not", "running", 1, true],
      ["neither is one before the app was ready", "starting", 0, true],
    ] as const)("%s", (_name, state, restarts, known) => {
      const { crash } = afterEnd(record({ state, restarts }), exit(1));
      expect(crash && isKnownToCrash(crash)).toBe(known);
    });

    test.each<[MachineState, Goal, boolean, MachineState]>([
      ["running", null, false, "running"],
      ["starting", null, false, "running"],
      ["restarting", null, true, "running"],
      ["failed", null, false, "running"],
      ["stopped", null, false, "stopped"],
      ["stopped", null, true, "running"],
      ["suspended", null, false, "suspended"],
      ["created", null, false, "created"],
      ["stopping", null, false, "stopped"],
      ["stopping", "running", false, "running"],
      ["stopping", "restarting", true, "running"],
    ])("an update of a machine that is %s with goal %s, crashed %s: %s", (state, goal, crashed, rest) => {
      const { crash } = crashed ? afterEnd(record(), exit(1)) : { crash: null };
      expect(restAfterUpdate({ state, goal, crash })).toBe(rest);
    });
  });
});

describe("names and addresses", () => {
  test("ids are 14 hex digits, versions are ULIDs that sort by time", () => {
    expect(newMachineId()).toMatch(/^[0-9a-f]{14}$/);
    expect(newMachineName()).toMatch(/^[a-z]+-[a-z]+-[0-9]{6}$/);
    fc.assert(
      fc.property(fc.nat(2 ** 47), fc.nat(2 ** 47), (a, b) => {
        const [one, other] = [newUlid(a), newUlid(b)];
        expect(one).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
        if (a < b) expect(one < other).toBe(true);
      }),
    );
  });

  test("a machine's address is a loopback address that no other machine has", () => {
    const network = new UserNetwork();
    const taken = new Set<string>();
    for (let machine = 0; machine < 1000; machine += 1) {
      const address = network.allocate(taken);
      expect(address).toMatch(/^127\.(1[6-9]|[2-9]\d|1\d\d|2[0-5]\d)\.\d{1,3}\.\d{1,3}$/);
      expect(taken.has(address)).toBe(false);
      taken.add(address);
    }
  });
});
