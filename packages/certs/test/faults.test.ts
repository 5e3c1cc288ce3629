/** What replies of an ACME server mean. */
import { expect, test } from "vitest";
import { faultOf, responseFault, retryAfter } from "../src/acme-faults.ts";
import { AuthorityFault } from "../src/contract.ts";

const NOW = Date.parse("2026-03-01T00:00:00Z");
const problem = (type: string, detail = "too much") => ({ type: `urn:ietf:params:acme:error:${type}`, detail });

test.each<[string, Parameters<typeof responseFault>[0], object | undefined]>([
  ["success", { status: 201, headers: {} }, undefined],
  ["a used nonce, which the library repeats", { status: 400, headers: {}, data: problem("badNonce") }, undefined],
  [
    "a rate limit with a pause",
    { status: 429, headers: { "retry-after": "3600" }, data: problem("rateLimited") },
    { kind: "limited", retryAfterMs: 3_600_000, message: "The authority refused: too much" },
  ],
  [
    "a rate limit with a date",
    { status: 429, headers: { "retry-after": "Sun, 01 Mar 2026 00:10:00 GMT" } },
    { kind: "limited", retryAfterMs: 600_000 },
  ],
  [
    "a busy server behind another one",
    { status: 503, headers: {}, data: "<html>" },
    { kind: "limited", retryAfterMs: undefined, message: "The authority refused: it answered with status 503" },
  ],
  [
    "a name that it does not sign for",
    { status: 400, headers: {}, data: problem("rejectedIdentifier", "no thanks") },
    { kind: "refused", problem: "urn:ietf:params:acme:error:rejectedIdentifier" },
  ],
])("%s", (_, reply, fault) => {
  const found = responseFault(reply, NOW);
  if (fault === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(fault);
});

test.each([
  ["0", 0],
  ["120", 120_000],
  ["Sat, 28 Feb 2026 00:00:00 GMT", 0],
  ["soon", undefined],
  [undefined, undefined],
])("Retry-After %s asks for %s ms", (value, ms) => expect(retryAfter(value, NOW)).toBe(ms));

test("a connection that fails is a fault that says so", () => {
  const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" });
  expect(faultOf(refused)).toMatchObject({ kind: "unreachable", message: expect.stringContaining("ECONNREFUSED") });
  const own = new AuthorityFault("limited", "slow down", { retryAfterMs: 5 });
  expect(faultOf(own)).toBe(own);
  expect(faultOf(new Error("odd"))).toMatchObject({ kind: "refused" });
});
