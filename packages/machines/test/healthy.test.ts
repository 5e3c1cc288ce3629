/** Waiting until a machine has shown that it works, or that it does not. */
import type { CheckResult } from "@hibernaut/domain/check";
import { healthOf } from "@hibernaut/domain/health";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FakePlatform } from "../../platform/test/helpers/fake-world.ts";
import { newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";

const result = (status: CheckResult["status"], name = "web"): CheckResult => ({
  name,
  status,
  output: "500 no",
  updated_at: "",
});
const CHECKED = { ...SMALL, checks: { web: { type: "http" as const, port: 8080 } } };

describe("the health of a machine", () => {
  const running = { state: "running" as const, stateReason: null, unreachable: null, config: SMALL };
  const exit = { at: "", reason: "the app exited with code 1", exit_code: 1, attempt: 1, max_attempts: 3 };
  const crash = { ...exit, at_start: true, retry_at: null };
  test.each([
    ["running and listening", running, [], "healthy", "it answers on its ports"],
    ["running without services", { ...running, config: { ...SMALL, services: [] } }, [], "healthy", "it is up"],
    [
      "not listening yet",
      { ...running, stateReason: "the app does not listen yet" },
      [],
      "unknown",
      "the app does not listen yet",
    ],
    ["unreachable", { ...running, unreachable: "it listens on loopback" }, [], "unhealthy", "it listens on loopback"],
    ["not checked yet", { ...running, config: CHECKED }, [], "unknown", "its checks have not run yet"],
    ["within its grace period", { ...running, config: CHECKED }, [result("warning")], "unknown", "web: 500 no"],
    ["passing", { ...running, config: CHECKED }, [result("passing")], "healthy", "its checks pass"],
    ["failing", { ...running, config: CHECKED }, [result("critical")], "unhealthy", "its check web fails: 500 no"],
    [
      "asleep, with results from before",
      { ...running, state: "suspended" as const },
      [result("passing")],
      "unknown",
      "it is suspended",
    ],
    [
      "ended",
      { ...running, state: "stopped" as const, stateReason: "the app exited with code 1" },
      [],
      "unknown",
      "it is stopped: the app exited with code 1",
    ],
    [
      "crashed",
      { ...running, state: "failed" as const, crash },
      [],
      "unknown",
      "it crashed on start: the app exited with code 1",
    ],
    ["running again after a crash", { ...running, crash }, [], "healthy", "it answers on its ports"],
  ])("%s", (_what, record, checks, status, reason) => {
    expect(healthOf(record, checks)).toEqual({ status, reason });
  });
});

describe("a wait for health", () => {
  let world: World;
  let platform: FakePlatform;
  let results: CheckResult[];
  const listeners = new Set<(id: string) => void>();
  /** What the platform itself listens with. */
  let own: number;

  beforeEach(async () => {
    world = await newWorld();
    results = [];
    platform = await startPlatform(world, {
      wrap: (deps) => ({
        ...deps,
        checkResults: () => results,
        subscribeToChecks: (listener) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      }),
    });
    platform.apps.create("shop");
    own = listeners.size;
  });
  afterEach(async () => {
    await platform.close();
    expect(listeners.size).toBe(0);
    await world.dispose();
  });

  test.each(["healthy", "unhealthy"] as const)(
    "ends with the check result that makes the machine %s",
    async (target) => {
      const { record } = await platform.machines.create("shop", { config: CHECKED });
      const options = { timeoutMs: 5000 };
      await platform.machines.wait("shop", record.id, ["running"], options);
      const waiting = platform.machines.wait("shop", record.id, [target], options);
      results = [result("warning")];
      for (const listener of listeners) listener(record.id);
      results = [result(target === "healthy" ? "passing" : "critical")];
      for (const listener of listeners) listener(record.id);
      expect(await waiting).toBe("running");
      expect(listeners.size).toBe(own);
    },
  );

  test("a machine without checks is healthy as soon as it is running", async () => {
    const { record } = await platform.machines.create("shop", { config: SMALL });
    expect(await platform.machines.wait("shop", record.id, ["healthy"], { timeoutMs: 5000 })).toBe("running");
  });

  test("a timeout says what was waited for", async () => {
    const { record } = await platform.machines.create("shop", { config: CHECKED, skipLaunch: true });
    await expect(platform.machines.wait("shop", record.id, ["healthy"], { timeoutMs: 1 })).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
    expect(listeners.size).toBe(own);
  });
});
