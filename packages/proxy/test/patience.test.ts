/** The three nested time limits of a wake: each one ends before the one around it. */
import { CONNECT_TIMEOUT_MS, FIND_MACHINE_MS, findMachineMs, HOLD_TIMEOUT_MS } from "@hibernaut/domain/patience";
import { readSettings } from "@hibernaut/settings";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DEFAULT_LIMITS } from "../src/http/limits.ts";

test("a connection is given up before a held request, and both together before the search for a machine", () => {
  expect(CONNECT_TIMEOUT_MS).toBeLessThan(HOLD_TIMEOUT_MS);
  expect(HOLD_TIMEOUT_MS + CONNECT_TIMEOUT_MS).toBeLessThan(FIND_MACHINE_MS);
});

test("a single attempt to connect is shorter than the time for all of them", () => {
  expect(DEFAULT_LIMITS.connectAttemptMs).toBeLessThan(CONNECT_TIMEOUT_MS);
});

test("the settings and the engine default to these limits", () => {
  const { proxyHoldTimeoutMs, proxyConnectTimeoutMs } = readSettings({});
  expect({ proxyHoldTimeoutMs, proxyConnectTimeoutMs }).toEqual({
    proxyHoldTimeoutMs: HOLD_TIMEOUT_MS,
    proxyConnectTimeoutMs: CONNECT_TIMEOUT_MS,
  });
  expect(DEFAULT_LIMITS.findMachineMs).toBe(FIND_MACHINE_MS);
  expect(findMachineMs({ holdTimeoutMs: HOLD_TIMEOUT_MS, connectTimeoutMs: CONNECT_TIMEOUT_MS })).toBe(FIND_MACHINE_MS);
});

test("whatever the settings say, the outer limit ends last", () => {
  const limit = fc.integer({ min: 10, max: 600_000 });
  fc.assert(
    fc.property(limit, limit, (holdTimeoutMs, connectTimeoutMs) => {
      expect(findMachineMs({ holdTimeoutMs, connectTimeoutMs })).toBeGreaterThan(holdTimeoutMs + connectTimeoutMs);
    }),
  );
});
