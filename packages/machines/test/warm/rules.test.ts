import type { ServiceConfig } from "@hibernaut/domain/service-config";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evictions, type KeptMachine, keepWarmMs } from "../../src/warm/rules.ts";

const MB = 1024 * 1024;
const service = (keep_warm?: number): ServiceConfig => ({
  internal_port: 80,
  ...(keep_warm !== undefined && { keep_warm }),
});
const kept = (machineId: string, sinceMs: number, untilMs = 1e9, bytes = 100 * MB): KeptMachine => ({
  machineId,
  sinceMs,
  untilMs,
  bytes,
});

describe("how long a VMM is kept", () => {
  test.each([
    ["a machine without services: as the platform says", undefined, 300_000],
    ["a service that says nothing: likewise", [service()], 300_000],
    ["a service that says 0: not at all", [service(0)], 0],
    ["several: the longest time of all", [service(0), service(20), service(10)], 20_000],
    ["one that says nothing among others: its default counts", [service(20), service()], 300_000],
  ])("%s", (_, services, expected) => {
    expect(keepWarmMs({ ...(services && { services }) }, 300)).toBe(expected);
  });
});

describe("what ends", () => {
  const now = { nowMs: 1000, budgetBytes: 1000 * MB, pressure: false };

  test("nothing, as long as there is time and room", () => {
    expect(evictions([kept("a", 1), kept("b", 2)], now)).toEqual([]);
  });

  test("those whose time is over", () => {
    expect(evictions([kept("a", 1, 999), kept("b", 2, 1000), kept("c", 3, 1001)], now)).toEqual([
      { machineId: "a", reason: "expired" },
      { machineId: "b", reason: "expired" },
    ]);
  });

  test("those that were suspended longest ago, until the rest fits", () => {
    const machines = [kept("new", 3), kept("old", 1), kept("middle", 2)];
    expect(evictions(machines, { ...now, budgetBytes: 200 * MB })).toEqual([{ machineId: "old", reason: "budget" }]);
    expect(evictions(machines, { ...now, budgetBytes: 0 }).map(({ machineId }) => machineId)).toEqual([
      "old",
      "middle",
      "new",
    ]);
  });

  test("under memory pressure one at a time, the oldest first", () => {
    const machines = [kept("new", 2), kept("old", 1)];
    expect(evictions(machines, { ...now, pressure: true })).toEqual([{ machineId: "old", reason: "pressure" }]);
    expect(evictions([], { ...now, pressure: true })).toEqual([]);
  });

  test("exactly what has to: the rest fits, and one more would have fitted too little", () => {
    const machine = fc.record({
      machineId: fc.uuid(),
      sinceMs: fc.nat(1000),
      untilMs: fc.nat(2000),
      bytes: fc.nat(300),
    });
    const machines = fc.uniqueArray(machine, { selector: ({ machineId }) => machineId, maxLength: 20 });
    fc.assert(
      fc.property(machines, fc.nat(3000), (all, budgetBytes) => {
        const gone = evictions(all, { nowMs: 1000, budgetBytes, pressure: false });
        const ids = new Set(gone.map(({ machineId }) => machineId));
        expect(ids.size).toBe(gone.length);
        const left = all.filter(({ machineId }) => !ids.has(machineId));
        const sum = left.reduce((total, { bytes }) => total + bytes, 0);
        expect(sum).toBeLessThanOrEqual(budgetBytes);
        expect(left.every(({ untilMs }) => untilMs > 1000)).toBe(true);
        const forRoom = all.filter(({ machineId }) =>
          gone.some((each) => each.machineId === machineId && each.reason === "budget"),
        );
        const youngest = forRoom.toSorted((one, other) => other.sinceMs - one.sinceMs)[0];
        if (youngest === undefined) return;
        expect(sum + youngest.bytes).toBeGreaterThan(budgetBytes);
        for (const { sinceMs } of left) expect(sinceMs).toBeGreaterThanOrEqual(youngest.sinceMs);
      }),
    );
  });
});
