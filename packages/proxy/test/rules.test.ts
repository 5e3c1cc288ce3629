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

type More = Partial<Candidate>;
const machine = (id: string, state: MachineState, load = 0, more: More = {}): Candidate => ({
  ...{ id, state, load, softLimit: 10, hardLimit: 20, autostart: true },
  ...{ healthy: true, reachable: true, resting: false, crashing: false, distance: 0 },
  ...more,
});
const runs = (id: string, load: number, more: More = {}) => machine(id, "running", load, more);
/** A machine of another host. */
const far = (id: string, state: MachineState, load = 0, more: More = {}) =>
  machine(id, state, load, { distance: 3, ...more });
const [RESTS, CRASHES, AWAY] = [{ resting: true }, { crashing: true }, { reachable: false }];

describe("balancing", () => {
  test.each<[string, Candidate[], string]>([
    ["the least loaded under its soft limit", [runs("a", 5), runs("b", 3)], "b"],
    ["the first of equals", [runs("a", 1), runs("b", 1)], "a"],
    ["not one at the soft limit while another has room", [runs("a", 10), runs("b", 9)], "b"],
    ["the least loaded if all are there", [runs("a", 12), runs("b", 11), machine("c", "suspended")], "b, wakes c"],
    ["not one that rests while another has room", [runs("a", 0, RESTS), runs("b", 9)], "b"],
    ["one that rests before any over its soft limit", [runs("a", 2, RESTS), runs("b", 10)], "a"],
    ["one that rests before a wake", [runs("a", 2, RESTS), runs("b", 10), machine("c", "suspended")], "a"],
    ["a suspended one before a stopped one", [machine("a", "stopped"), machine("b", "suspended")], "wakes b"],
    ["a stopped one, when there is nothing better", [machine("a", "stopped")], "wakes a"],
    ["one that is being suspended first", [machine("a", "suspended"), machine("b", "suspending")], "wakes b"],
    ["no other one while one is on its way", [machine("a", "starting"), machine("b", "suspended")], "waits"],
    ["none over its hard limit", [runs("a", 20)], "waits"],
    ["another one at the hard limit", [runs("a", 20), machine("b", "suspended")], "wakes b"],
    ["none without autostart", [machine("a", "suspended", 0, { autostart: false })], "in vain"],
    ["none that crashes", [machine("a", "starting", 0, CRASHES), machine("b", "stopped", 0, CRASHES)], "in vain"],
    ["another one in its place", [machine("a", "restarting", 0, CRASHES), machine("b", "stopped")], "wakes b"],
    ["one that is started again after its first failure", [machine("a", "restarting")], "waits"],
    ["none whose app listens elsewhere", [runs("a", 0, AWAY)], "in vain"],
    ["nor one while another is on its way", [runs("a", 0, AWAY), machine("b", "starting")], "waits"],
    ["none that failed", [machine("a", "failed")], "in vain"],
    ["none, if there is none", [], "in vain"],
    ["one of this host in a tie", [far("b", "running"), runs("a", 0)], "a"],
    ["one of this host, up to a step more of load", [far("b", "running"), runs("a", 3)], "a"],
    ["another host's, when it has a step less", [far("b", "running"), runs("a", 4)], "b"],
    ["one that runs elsewhere before one asleep here", [machine("a", "suspended"), far("b", "running")], "b"],
    ["one asleep here before one elsewhere", [far("b", "suspended"), machine("a", "suspended")], "wakes a"],
    ["one asleep elsewhere, to wait there, before a boot", [machine("a", "stopped"), far("b", "suspended")], "b"],
    ["one on its way elsewhere, to wait there", [far("b", "starting")], "b"],
    ["one on its way here, to wait here", [far("b", "starting"), machine("a", "starting")], "waits"],
    ["the least loaded, and one elsewhere is woken", [runs("a", 10), far("b", "suspended")], "a, wakes b"],
    ["none that is full, here and elsewhere", [runs("a", 20), far("b", "running", 20)], "waits"],
    ["a full one elsewhere, to wait there", [far("b", "running", 21), far("c", "running", 20)], "c"],
    ["none whose host is away", [far("b", "suspended", 0, AWAY)], "in vain"],
    ["none whose host is away, in any state", [far("b", "starting", 0, AWAY), machine("a", "stopped")], "wakes a"],
  ])("a request gets %s", (_name, machines, expected) => {
    const { send, wake, hope } = choose(machines);
    const chosen = [send?.id, wake && `wakes ${wake.id}`].filter((each) => each !== undefined);
    expect(chosen.join(", ") || (hope ? "waits" : "in vain")).toBe(expected);
    expect(hope).toBe(expected !== "in vain");
  });

  const any = {
    id: fc.uuid(),
    state: fc.constantFrom<MachineState>("running", "running", "suspended", "stopped", "starting", "failed"),
    load: fc.nat(30),
    softLimit: fc.integer({ min: 1, max: 15 }),
    hardLimit: fc.integer({ min: 15, max: 25 }),
    autostart: fc.boolean(),
    healthy: fc.boolean(),
    reachable: fc.boolean(),
    resting: fc.boolean(),
    crashing: fc.boolean(),
    distance: fc.constantFrom(0, 5),
  };

  test("whatever there is: a request never waits here for what only another host decides", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.record(any), { maxLength: 6, selector: ({ id }) => id }), (machines) => {
        const { send, wake, hope } = choose(machines);
        if (send === undefined && wake !== undefined) expect(wake.distance).toBe(0);
        if (send === undefined && hope) expect(machines.some(({ distance }) => distance === 0)).toBe(true);
        if (send !== undefined && send.distance === 0) expect(send.state).toBe("running");
        expect(send?.reachable ?? true).toBe(true);
      }),
    );
  });

  test("whatever the loads here: never over hard, over soft only when all are, one wake at most", () => {
    const here = fc.record({
      ...any,
      ...{ healthy: fc.constant(true), reachable: fc.constant(true), distance: fc.constant(0) },
    });
    fc.assert(
      fc.property(fc.uniqueArray(here, { maxLength: 8, selector: ({ id }) => id }), (machines) => {
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
  const policy = (minRunning = 0, autostop: "suspend" | "off" = "suspend") =>
    ({ autostop, minRunning, softLimit: 10, idleTimeoutMs: IDLE }) as IdleMachine["policy"];
  const idle = (id: string, idleMs = IDLE, least = 0): IdleMachine => ({
    ...{ id, load: 0, idleMs, keptAwake: false, wakeable: true, resting: false, policy: policy(least) },
  });
  const busy = (id: string, load: number): IdleMachine => ({ ...idle(id, 0), load });
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
  const running = (id: string, load: number, more: Partial<IdleMachine> = {}, least = 0): IdleMachine => ({
    ...{ id, load, idleMs: 0, keptAwake: false, wakeable: true, resting: false, policy: policy(least, "suspend") },
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
      ...{ web: false, pinned: false, worker: false, ownPorts: [], replayFrom: [], wakePage: false, h2Backend: false },
      ...{ forceHttps: false, ownHeaders: undefined },
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
