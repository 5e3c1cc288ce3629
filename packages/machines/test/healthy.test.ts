/** Waiting until a machine has shown that it works, or that it does not. */
import type { CheckResult } from "@hibernaut/domain/check";
import { healthOf } from "@hibernaut/domain/health";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "./shop.ts";

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
  let results: CheckResult[];
  const listeners = new Set<(id: string) => void>();
  /** What the platform itself listens with. */
  let own: number;

  const shop = shopForEach({
    wrap: (deps) => ({
      ...deps,
      checkResults: () => results,
      subscribeToChecks: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    }),
  });
  beforeEach(() => {
    results = [];
    own = listeners.size;
  });
  afterAll(() => expect(listeners.size).toBe(0));

  test.each(["healthy", "unhealthy"] as const)(
    "ends with the check result that makes the machine %s",
    async (target) => {
      const id = await shop.run(CHECKED);
      const waiting = shop.reach(id, target);
      for (const status of ["warning", target === "healthy" ? "passing" : "critical"] as const) {
        results = [result(status)];
        for (const listener of listeners) listener(id);
      }
      expect(await waiting).toBe("running");
      expect(listeners.size).toBe(own);
    },
  );

  test("a machine without checks is healthy as soon as it is running", async () => {
    expect(await shop.reach(await shop.launch(), "healthy")).toBe("running");
  });

  test("a timeout says what was waited for", async () => {
    const id = await shop.create(CHECKED);
    await expect(shop.machines.wait("shop", id, ["healthy"], { timeoutMs: 1 })).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
    expect(listeners.size).toBe(own);
  });
});
