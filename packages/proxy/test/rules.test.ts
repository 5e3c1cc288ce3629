/** The proxy's rules, as tables: which machine takes a request, which is woken, which may sleep. */
import { type MachineConfig } from "@hibernaut/domain/config";
import { requireSupported } from "@hibernaut/domain/config-rules";
import type { MachineState } from "@hibernaut/domain/machine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Candidate, choose } from "../src/balance.ts";
import { Demand } from "../src/demand.ts";
import { type IdleMachine, neededOf, planRest, planSleep } from "../src/idle.ts";
import { appOf } from "../src/routing.ts";
import { policyOf } from "../src/service-policy.ts";

const machine = (id: string, state: MachineState, load = 0, more: Partial<Candidate> = {}): Candidate => ({
  id,
  state,
  load,
  softLimit: 10,
  hardLimit: 20,
  autostart: true,
  healthy: true,
  reachable: true,
  resting: false,
  crashing: false,
  distance: 0,
  ...more,
});

describe("balancing", () => {
  test.each<[string, Candidate[], { send?: string; wake?: string; hope: boolean }]>([
    [
      "the least loaded under its soft limit",
      [machine("a", "running", 5), machine("b", "running", 3)],
      { send: "b", hope: true },
    ],
    ["the first of equals", [machine("a", "running", 1), machine("b", "running", 1)], { send: "a", hope: true }],
    [
      "one at the soft limit is left out while another has room",
      [machine("a", "running", 10), machine("b", "running", 9)],
      { send: "b", hope: true },
    ],
    [
      "all at the soft limit: the least loaded, and another is woken",
      [machine("a", "running", 12), machine("b", "running", 11), machine("c", "suspended")],
      { send: "b", wake: "c", hope: true },
    ],
    [
      "one that rests is left out while another has room, whatever its load",
      [machine("a", "running", 0, { resting: true }), machine("b", "running", 9)],
      { send: "b", hope: true },
    ],
    [
      "one that rests before any over its soft limit, and before a wake",
      [machine("a", "running", 2, { resting: true }), machine("b", "running", 10), machine("c", "suspended")],
      { send: "a", hope: true },
    ],
    [
      "a suspended one is woken before a stopped one",
      [machine("a", "stopped"), machine("b", "suspended")],
      { wake: "b", hope: true },
    ],
    ["a stopped one, when there is nothing better", [machine("a", "stopped")], { wake: "a", hope: true }],
    [
      "one that is being suspended is turned around first",
      [machine("a", "suspended"), machine("b", "suspending")],
      { wake: "b", hope: true },
    ],
    ["none is woken while one is on its way", [machine("a", "starting"), machine("b", "suspended")], { hope: true }],
    ["never over the hard limit: it waits", [machine("a", "running", 20)], { hope: true }],
    [
      "at the hard limit another is woken",
      [machine("a", "running", 20), machine("b", "suspended")],
      { wake: "b", hope: true },
    ],
    ["without autostart nothing is woken", [machine("a", "suspended", 0, { autostart: false })], { hope: false }],
    [
      "one whose app crashes is neither waited for nor woken",
      [machine("a", "starting", 0, { crashing: true }), machine("b", "stopped", 0, { crashing: true })],
      { hope: false },
    ],
    [
      "another one is woken in its place",
      [machine("a", "restarting", 0, { crashing: true }), machine("b", "stopped")],
      { wake: "b", hope: true },
    ],
    ["one that is started again after its first failure is waited for", [machine("a", "restarting")], { hope: true }],
    [
      "one whose app listens elsewhere is not waited for",
      [machine("a", "running", 0, { reachable: false })],
      { hope: false },
    ],
    [
      "nor given a request while another one is on its way",
      [machine("a", "running", 0, { reachable: false }), machine("b", "starting")],
      { hope: true },
    ],
    ["waiting for a failed machine is in vain", [machine("a", "failed")], { hope: false }],
    ["without a machine, waiting is in vain", [], { hope: false }],
  ])("%s", (_name, machines, { send, wake, hope }) => {
    const choice = choose(machines);
    expect({ send: choice.send?.id, wake: choice.wake?.id, hope: choice.hope }).toEqual({ send, wake, hope });
  });

  test("whatever the loads: never over hard, over soft only when all are, one wake at most", () => {
    const any = fc.record({
      id: fc.uuid(),
      state: fc.constantFrom<MachineState>("running", "running", "suspended", "stopped", "starting", "failed"),
      load: fc.nat(30),
      softLimit: fc.integer({ min: 1, max: 15 }),
      hardLimit: fc.integer({ min: 15, max: 25 }),
      autostart: fc.boolean(),
      healthy: fc.constant(true),
      reachable: fc.constant(true),
      resting: fc.boolean(),
      crashing: fc.boolean(),
      distance: fc.constant(0),
    });
    fc.assert(
      fc.property(fc.uniqueArray(any, { maxLength: 8, selector: ({ id }) => id }), (machines) => {
        const { send: chosen, wake } = choose(machines);
        const running = machines.filter(({ state }) => state === "running");
        if (chosen !== undefined) {
          expect(chosen.state).toBe("running");
          expect(chosen.load).toBeLessThan(chosen.hardLimit);
          if (chosen.load >= chosen.softLimit)
            expect(running.every(({ load, softLimit }) => load >= softLimit)).toBe(true);
        } else {
          expect(running.every(({ load, hardLimit }) => load >= hardLimit)).toBe(true);
        }
        if (wake !== undefined) {
          expect(wake).toMatchObject({ autostart: true, crashing: false });
          expect(running.every(({ load, softLimit }) => load >= softLimit)).toBe(true);
          expect(machines.some(({ state, crashing }) => state === "starting" && !crashing)).toBe(false);
        }
      }),
    );
  });
});

describe("sleeping", () => {
  const IDLE = 5000;
  const policy = (least = 0, autostop: "suspend" | "stop" | "off" = "suspend") => ({
    port: 8080,
    autostop,
    autostopFallback: "stop" as const,
    autostart: true,
    minRunning: least,
    idleTimeoutMs: IDLE,
    quiet: false,

    unit: "requests" as const,
    softLimit: 10,
    hardLimit: 20,
    ...{
      web: true,
      pinned: false,
      ownPorts: [],
      replayFrom: [],
      forceHttps: false,
      wakePage: false,
      h2Backend: false,
      ownHeaders: undefined,
    },
  });
  const idle = (id: string, idleMs = IDLE, least = 0): IdleMachine => ({
    id,
    load: 0,
    idleMs,
    keptAwake: false,
    resting: false,
    policy: policy(least),
  });
  const busy = (id: string, load: number, least = 0): IdleMachine => ({
    id,
    load,
    idleMs: 0,
    keptAwake: false,
    resting: false,
    policy: policy(least),
  });

  const pinned = (one: IdleMachine): IdleMachine => ({ ...one, policy: { ...one.policy, pinned: true } });

  test.each<[string, IdleMachine[], string[]]>([
    ["one, idle for its time", [idle("a")], ["a"]],
    ["one, not yet", [idle("a", IDLE - 1)], []],
    ["one with a request open", [busy("a", 1)], []],
    ["two idle: one goes, the other is looked at alone later", [idle("a", 6000), idle("b", 7000)], ["b"]],
    [
      "n=5, k=0: excess 4, all of it in one pass",
      ["a", "b", "c", "d", "e"].map((id, i) => idle(id, 6000 + i)),
      ["e", "d", "c", "b"],
    ],
    ["n=4, k=1: excess 2", [busy("a", 10), idle("b", 5001), idle("c", 5002), idle("d", 5003)], ["d", "c"]],
    ["n=4, k=2: excess 1", [busy("a", 10), busy("b", 15), idle("c", 5002), idle("d", 5003)], ["d"]],
    ["n=3, k=2: none is too many", [busy("a", 10), busy("b", 10), idle("c")], []],
    ["n=2, k=2: none", [busy("a", 10), busy("b", 10)], []],
    ["busy ones under the limit stay, however many are too many", [busy("a", 1), busy("b", 1), busy("c", 1)], []],
    ["never below the minimum", [idle("a", 9000, 2), idle("b", 8000, 2), idle("c", 7000, 2)], ["a"]],
    ["a minimum of one keeps the last one", [idle("a", 9000, 1)], []],
    ["kept awake by its app", [{ ...idle("a"), keptAwake: true }], []],
    ["auto_stop_machines is off", [{ ...idle("a"), policy: policy(0, "off") }], []],
    ["pinned ones: each that is idle", [pinned(idle("a")), pinned(idle("b")), pinned(idle("c", 1))], ["a", "b"]],
    ["a pinned one whose siblings are busy", [pinned(busy("a", 10)), pinned(idle("b")), busy("c", 10)], ["b"]],
    ["pinned ones do not count for the others", [pinned(busy("a", 10)), idle("b", 6000), idle("c")], ["b"]],
    ["nor for their minimum", [pinned(idle("a", 9000)), idle("b", 8000, 1)], ["a"]],
    ["a single one next to pinned ones", [pinned(busy("a", 1)), idle("b")], ["b"]],
    ["one with autostop off, pinned", [pinned({ ...idle("a"), policy: policy(0, "off") })], []],
    ["nothing runs", [], []],
  ])("%s", (_name, running, sleepers) => {
    expect(planSleep(running)).toEqual(sleepers);
  });
});

describe("resting", () => {
  const policy = (minRunning: number, autostop: "suspend" | "off") =>
    ({ autostop, minRunning, softLimit: 10, idleTimeoutMs: 5000 }) as IdleMachine["policy"];
  const running = (
    id: string,

    load: number,
    more: Partial<IdleMachine> = {},
    least = 0,
  ): IdleMachine => ({
    ...{ id, load, idleMs: 0, keptAwake: false, resting: false, policy: policy(least, "suspend") },
    ...more,
  });
  const pinned = (id: string, load: number) => running(id, load, { policy: { ...policy(0, "suspend"), pinned: true } });

  test.each<[string, IdleMachine[], number, string[]]>([
    ["one alone never rests", [running("a", 0)], 1, []],
    ["one is needed: the last of equals rests", [running("a", 1), running("b", 1)], 1, ["b"]],
    ["the least loaded rests", [running("a", 1), running("b", 4), running("c", 2)], 1, ["a", "c"]],
    ["who rests already, rests on", [running("a", 0), running("b", 3, { resting: true })], 1, ["b"]],
    ["two were needed lately", [running("a", 1), running("b", 1), running("c", 0)], 2, ["c"]],
    ["as many were needed as there are", [running("a", 1), running("b", 1)], 2, []],
    ["the minimum does not rest", [running("a", 0, {}, 2), running("b", 0, {}, 2), running("c", 0, {}, 2)], 1, ["c"]],
    ["who is kept awake does not rest", [running("a", 3), running("b", 0, { keptAwake: true })], 1, ["a"]],
    ["nor who never sleeps", [running("a", 3), running("b", 0, { policy: policy(0, "off") })], 1, ["a"]],
    ["pinned ones never rest", [pinned("a", 0), pinned("b", 0)], 1, []],
    ["nor do others rest for them", [pinned("a", 5), running("b", 0)], 1, []],
    ["the others rest as if they were alone", [pinned("a", 0), running("b", 1), running("c", 0)], 1, ["c"]],
    ["nothing runs", [], 1, []],
  ])("%s", (_what, machines, lately, expected) => {
    expect([...planRest(machines, lately)].toSorted()).toEqual(expected);
  });

  test("pinned machines are not among those that an app needs", () => {
    expect(neededOf([pinned("a", 10), pinned("b", 10)])).toBe(0);
    expect(neededOf([pinned("a", 10), running("b", 10), running("c", 0)])).toBe(2);
  });

  test("what an app needed is remembered for the idle timeout, each number of machines by itself", () => {
    const demand = new Demand();
    expect([demand.lately(1000, 0), demand.untilLessMs(1000, 0)]).toEqual([0, Number.POSITIVE_INFINITY]);
    demand.note(3, 0);
    demand.note(1, 600);
    expect([demand.lately(1000, 999), demand.untilLessMs(1000, 999)]).toEqual([3, 1]);
    expect([demand.lately(1000, 1000), demand.untilLessMs(1000, 1000)]).toEqual([1, 600]);
    expect(demand.lately(1000, 1600)).toBe(0);
  });
});

describe("routing", () => {
  const names = { "www.example.com": "shop" };
  test.each([
    ["shop.localhost", "shop"],
    ["shop.localhost.", "shop"],
    ["shop.apps.example.org", "shop"],
    ["www.example.com", "shop"],
    ["a.b.localhost", undefined],
    [".localhost", undefined],
    ["localhost", undefined],
    ["shop.elsewhere", undefined],
    ["constructor", undefined],
  ])("%s -> %s", (host, app) => {
    expect(appOf(host, names, ["localhost", "apps.example.org"])).toBe(app);
  });
});

describe("a service's configuration", () => {
  const config = (service: object): MachineConfig => ({ image: "x", services: [{ internal_port: 8080, ...service }] });

  test("the defaults", () => {
    expect(policyOf(config({}))).toEqual({
      port: 8080,
      autostop: "off",
      autostopFallback: "stop",
      autostart: true,
      minRunning: 0,
      idleTimeoutMs: 300_000,
      quiet: false,

      unit: "requests",
      softLimit: 20,
      hardLimit: Number.POSITIVE_INFINITY,
      ...{
        web: false,
        pinned: false,
        ownPorts: [],
        replayFrom: [],
        wakePage: false,
        h2Backend: false,
        forceHttps: false,
        ownHeaders: undefined,
      },
    });
    expect(policyOf(config({ concurrency: { hard_limit: 5 } }))).toMatchObject({ softLimit: 5, hardLimit: 5 });
    expect(policyOf({ image: "x" })).toBeUndefined();
  });

  test("headers of responses are prepared by name", () => {
    const headers = { Server: false as const, "X-A": "1", Link: ["<a>", "<b>"] };
    const prepared = policyOf(config({ http_options: { response: { headers } } }))?.ownHeaders;
    expect(prepared?.map(({ key, fields }) => [key, fields.map(({ name, value }) => `${name}: ${value}`)])).toEqual([
      ["server", []],
      ["x-a", ["X-A: 1"]],
      ["link", ["Link: <a>", "Link: <b>"]],
    ]);
  });

  test.each([
    [{ Connection: "x" }, /The header connection cannot be set/],
    [{ "content-length": "1" }, /The header content-length cannot be set/],
    [{ "Hibernaut-Wake": false as const }, /The header hibernaut-wake cannot be set/],
    [{ "fly-replay": "app=a" }, /The header fly-replay cannot be set/],
    [{ "Bad Name": "x" }, /"bad name" is not a valid name of a header/],
    [{ "": "x" }, /"" is not a valid name of a header/],
    [{ "X-Fine": "x\r\nX-Evil: 1" }, /printable ASCII/],
    [{ "X-Fine": ["x", "x".repeat(1025)] }, /printable ASCII/],
  ])("the headers %j are refused with the reason", (headers, reason) => {
    expect(() => requireSupported(config({ http_options: { response: { headers } } }))).toThrow(reason);
  });

  test.each([
    [{ concurrency: { soft_limit: 30, hard_limit: 20 } }, /soft_limit.*30.*hard_limit.*20/],
    [{ protocol: "http", ports: [{ port: 5432 }] }, /Leave `ports` out, or use `protocol: tcp`/],
    [{ ports: [{ port: 5432 }, { port: 5432 }] }, /Port 5432 is listed twice/],
  ])("%j cannot work and is refused with the reason", (service, reason) => {
    expect(() => requireSupported(config(service))).toThrow(reason);
  });

  test.each([
    [{ autostop: "off", autostart: false }],
    [{ autostop: "suspend", autostart: false }],
    [{ autostop: "suspend" }],
    [{ protocol: "tcp", ports: [{ port: 5432 }, { port: 6432 }] }],
    [{ concurrency: { soft_limit: 20, hard_limit: 20 } }],
  ])("%j works", (service) => {
    expect(() => requireSupported(config(service))).not.toThrow();
  });
});
