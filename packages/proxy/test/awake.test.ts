/** What an owner is told who asks why a machine does not sleep. */
import { describe, expect, test } from "vitest";
import { type AwakeFacts, activityOf } from "../src/awake.ts";
import { type IdleMachine, planSleep } from "../src/idle.ts";
import { policyOf } from "../src/service-policy.ts";

const policy = policyOf({
  image: "app:1",
  services: [{ internal_port: 8080, autostop: "suspend", idle_timeout: 60, concurrency: { soft_limit: 2 } }],
});
if (policy === undefined) throw new Error("it has a service");

const idle: IdleMachine = {
  id: "a",
  load: 0,
  idleMs: 60_000,
  keptAwake: false,
  wakeable: true,
  resting: false,
  policy,
};
const facts = (changes: Partial<AwakeFacts> = {}): AwakeFacts => ({
  ...idle,
  policy,
  cordoned: false,
  commands: 0,
  lease: { ms: 0, reason: "" },
  running: [idle],
  ...changes,
});
const pinned: IdleMachine = { ...idle, policy: { ...policy, pinned: true } };
const min = (minRunning: number): IdleMachine => ({ ...idle, policy: { ...policy, minRunning } });

test.each<[Partial<AwakeFacts>, string, RegExp, (number | null)?]>([
  [{ policy: undefined }, "no_service", /by itself only as a worker/],
  [{ policy: { ...policy, autostop: "off" } }, "autostop_off", /autostop off/],
  [{ cordoned: true }, "cordoned", /cordoned/],
  [{ wakeable: false }, "not_connected", /^Nothing could wake it/],
  [{ load: 1 }, "open_requests", /^1 request is open/],
  [{ load: 3, policy: { ...policy, unit: "connections" } }, "open_requests", /^3 connections are open/],
  [{ commands: 2 }, "commands", /^2 commands are running/],
  [{ lease: { ms: 90_000, reason: "encoding" } }, "keep_awake", /for 90 s more: encoding\.$/, 90_000],
  [{ idleMs: 12_000 }, "recently_used", /^It was used 12 s ago\. It sleeps in 48 s\.$/, 48_000],
  [{ running: [min(1)] }, "min_machines_running", /At least 1 of its app's machines/],
  [{ running: [idle, { ...idle, id: "b", load: 2 }] }, "busy_siblings", /at their soft limit/],
  [{}, "due", /next check/, 0],
  [{ resting: true, idleMs: 0 }, "due", /next check/, 0],
  [{ ...pinned, running: [pinned, { ...min(3), id: "b", load: 2 }] }, "due", /next check/, 0],
])("%j: %s", (changes, reason, message, sleepsInMs = null) => {
  expect(activityOf(facts(changes))).toMatchObject({ reason, message: expect.stringMatching(message), sleepsInMs });
});

describe("agrees with the rule that puts machines to sleep", () => {
  test.each([
    [[idle]],
    [[min(1)]],
    [[idle, { ...idle, id: "b" }]],
    [[idle, { ...idle, id: "b", load: 2 }]],
    [[min(2), { ...min(2), id: "b" }]],
    [[idle, { ...pinned, id: "b", load: 2 }]],
    [[min(1), { ...pinned, id: "b", load: 2 }]],
  ])("%j", (running) => {
    const asleep = planSleep(running).length > 0;
    expect(activityOf(facts({ running })).reason === "due").toBe(asleep);
  });
});

test("a machine that has just come up has been idle for no negative time", () => {
  expect(activityOf(facts({ idleMs: -5000 })).idleMs).toBe(0);
});
