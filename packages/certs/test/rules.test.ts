/** When certificates are ordered, renewed and tried again, and for which names. */
import type { OrderFailure } from "@hibernaut/domain/certificate";
import { describe, expect, test } from "vitest";
import {
  challengeFor,
  challengeRecord,
  checkName,
  covers,
  orderTime,
  renewalTime,
  retryTime,
  type Situation,
  statusOf,
} from "../src/rules.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test.each([
  // lifetime in days, spread, renewal in days
  [90, 0, 60],
  [90, 1, 57],
  [90, 0.5, 58.5],
  [6, 0, 4],
  [45, 0, 30],
])("a certificate of %d days with the spread %d is renewed after %d days", (days, spread, renewal) => {
  const notBefore = 1_000 * DAY;
  expect(renewalTime({ notBefore, notAfter: notBefore + days * DAY }, spread)).toBe(notBefore + renewal * DAY);
});

test.each([
  // failures, what the authority wishes, random, pause, whether it is held
  [1, undefined, 0, 5 * MINUTE, false],
  [1, undefined, 1, 6 * MINUTE, false],
  [2, undefined, 0, 10 * MINUTE, false],
  [5, undefined, 0, 80 * MINUTE, false],
  [9, undefined, 0, 12 * HOUR, false],
  [2000, undefined, 0, 12 * HOUR, false],
  [1, 30_000, 0, 5 * MINUTE, false],
  [1, 3 * HOUR, 0, 3 * HOUR, true],
  [1, 400 * DAY, 0, DAY, true],
  [1, 0, 0, 5 * MINUTE, false],
])("after %d failures and a wish of %s ms, the pause is bounded", (attempts, retryAfterMs, random, pause, held) => {
  expect(retryTime(attempts, { now: 1000, random, retryAfterMs })).toEqual({ next: 1000 + pause, held });
});

test("an authority is asked at most 5 times within the first hour, which is what Let's Encrypt allows", () => {
  let now = 0;
  const tries = [now];
  for (let attempts = 1; attempts < 20; attempts += 1) {
    now = retryTime(attempts, { now, random: 0 }).next;
    tries.push(now);
  }
  for (const start of tries) expect(tries.filter((at) => at >= start && at < start + HOUR).length).toBeLessThan(5);
});

const NOW = Date.parse("2026-03-01T00:00:00Z");
const failed = (inMs: number): Pick<OrderFailure, "next"> => ({ next: new Date(NOW + inMs).toISOString() });
const certificate = (more: Partial<NonNullable<Situation["certificate"]>> = {}) => ({
  notBefore: NOW - 10 * DAY,
  notAfter: NOW + 80 * DAY,
  renewAt: NOW + 50 * DAY,
  current: true,
  ...more,
});

describe("an order is due", () => {
  test.each<[string, Partial<Situation>, number]>([
    ["at once without a certificate", {}, 0],
    ["when the pause after a failure is over", { failure: failed(HOUR) }, HOUR],
    ["when the renewal is", { certificate: certificate() }, 50 * DAY],
    [
      "after the pause, if a renewal failed",
      { certificate: certificate({ renewAt: NOW - DAY }), failure: failed(1) },
      1,
    ],
    ["at once if another authority is configured", { certificate: certificate({ current: false }) }, 0],
    ["never for a name that nobody has", { used: false }, Number.POSITIVE_INFINITY],
  ])("%s", (_, more, inMs) => {
    expect(orderTime({ now: NOW, certificate: undefined, failure: null, used: true, ...more }) - NOW).toBe(inMs);
  });
});

test.each<[ReturnType<typeof statusOf>, Partial<Situation>]>([
  ["ordering", {}],
  ["failed", { failure: failed(1) }],
  ["valid", { certificate: certificate() }],
  ["overdue", { certificate: certificate(), failure: failed(1) }],
  ["expired", { certificate: certificate({ notAfter: NOW }), failure: failed(1) }],
  ["unused", { certificate: certificate(), used: false }],
])("the status %s", (status, more) => {
  expect(statusOf({ now: NOW, certificate: undefined, failure: null, used: true, ...more })).toBe(status);
});

test.each([
  ["www.example.com", "www.example.com", true],
  ["www.example.com", "example.com", false],
  ["*.example.com", "www.example.com", true],
  ["*.example.com", "a.www.example.com", false],
  ["*.example.com", "example.com", false],
  ["*.example.com", "www.myexample.com", false],
])("%s covers %s: %s", (name, hostname, covered) => {
  expect(covers(name, hostname)).toBe(covered);
});

test("only wildcards are proven through DNS, below the name itself", () => {
  for (const challenge of ["http-01", "tls-alpn-01"] as const)
    expect([challengeFor("a.example.com", challenge), challengeFor("*.example.com", challenge)]).toEqual([
      challenge,
      "dns-01",
    ]);
  expect(challengeRecord("*.example.com")).toBe("_acme-challenge.example.com");
});

describe("names", () => {
  const own = ["www.example.com", "shop.apps.example.net", "shop.localhost"];
  test.each([
    ["WWW.Example.com.", "www.example.com"],
    ["*.example.com", "*.example.com"],
    ["*.apps.example.net", "*.apps.example.net"],
    ["shop.apps.example.net", "shop.apps.example.net"],
  ])("%s is %s", (text, name) => expect(checkName(text, "shop", own)).toBe(name));

  test.each([
    ["other.example.com", "hibernaut hostnames add other.example.com --app shop"],
    ["*.example.org", "hibernaut hostnames add www.example.org --app shop"],
    ["*.com", "hibernaut hostnames add www.com --app shop"],
    ["shop.localhost", "a name of this host only"],
    ["*.localhost", "a name of this host only"],
    ["", "a name of this host only"],
    ["a".repeat(500), "a name of this host only"],
    ["../etc.passwd", "hibernaut hostnames add"],
    ["*.*.example.com", "hibernaut hostnames add"],
  ])("%s is refused", (text, advice) => expect(() => checkName(text, "shop", own)).toThrow(advice));
});
