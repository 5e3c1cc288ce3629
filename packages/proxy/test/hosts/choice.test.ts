/** Which host's machine a request is given to: the rule, and what hosts do with it. */
import type { MachineState } from "@hibernaut/domain/machine";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Candidate, choose } from "../../src/balance.ts";
import { until } from "../http/helpers.ts";
import { APP, startHosts } from "./hosts-world.ts";

const machine = (id: string, state: MachineState, load = 0, more: Partial<Candidate> = {}): Candidate => ({
  ...{ id, state, load, softLimit: 20, hardLimit: 25, autostart: true },
  ...{ healthy: true, reachable: true, resting: false, crashing: false, distance: 0 },
  ...more,
});
/** Of another host. */
const far = (id: string, state: MachineState, load = 0, more: Partial<Candidate> = {}) =>
  machine(id, state, load, { distance: 5, ...more });

test.each<[string, Candidate[], { send?: string; wake?: string; hope: boolean }]>([
  ["one of this host wins a tie", [far("b", "running"), machine("a", "running")], { send: "a", hope: true }],
  [
    "one of this host, up to a step more of load",
    [far("b", "running", 0), machine("a", "running", 5)],
    { send: "a", hope: true },
  ],
  [
    "another host's, when it has a step less",
    [far("b", "running", 0), machine("a", "running", 6)],
    { send: "b", hope: true },
  ],
  [
    "one that runs elsewhere before one that sleeps here",
    [machine("a", "suspended"), far("b", "running")],
    { send: "b", hope: true },
  ],
  [
    "one that sleeps here before one that sleeps elsewhere",
    [far("b", "suspended"), machine("a", "suspended")],
    { wake: "a", hope: true },
  ],
  [
    "one that sleeps elsewhere before one here that has to boot: the request waits there",
    [machine("a", "stopped"), far("b", "suspended")],
    { send: "b", hope: true },
  ],
  ["one that is on its way elsewhere: the request waits there", [far("b", "starting")], { send: "b", hope: true }],
  [
    "one that is on its way here: the request waits here",
    [far("b", "starting"), machine("a", "starting")],
    { hope: true },
  ],
  [
    "all at their soft limit: the least loaded, and one elsewhere is woken",
    [machine("a", "running", 20), far("b", "suspended")],
    { send: "a", wake: "b", hope: true },
  ],
  [
    "full here and elsewhere: the request waits here",
    [machine("a", "running", 25), far("b", "running", 25)],
    { hope: true },
  ],
  [
    "full elsewhere: the request waits there",
    [far("b", "running", 26), far("c", "running", 25)],
    { send: "c", hope: true },
  ],
  [
    "one whose host is away is neither given requests nor woken",
    [far("b", "suspended", 0, { reachable: false })],
    { hope: false },
  ],
  [
    "one whose host is away, in whatever state it was",
    [far("b", "starting", 0, { reachable: false }), machine("a", "stopped")],
    { wake: "a", hope: true },
  ],
])("%s", (_what, machines, expected) => {
  const { send, wake, hope } = choose(machines);
  expect({ send: send?.id, wake: wake?.id, hope }).toEqual({ send: undefined, wake: undefined, ...expected });
});

test("whatever there is: a request never waits here for what only another host decides", () => {
  const any = fc.record({
    id: fc.uuid(),
    state: fc.constantFrom<MachineState>("running", "running", "suspended", "stopped", "starting", "failed"),
    load: fc.nat(30),
    softLimit: fc.constant(20),
    hardLimit: fc.constant(25),
    autostart: fc.boolean(),
    healthy: fc.boolean(),
    reachable: fc.boolean(),
    resting: fc.boolean(),
    crashing: fc.boolean(),
    distance: fc.constantFrom(0, 5),
  });
  fc.assert(
    fc.property(fc.uniqueArray(any, { maxLength: 6, selector: ({ id }) => id }), (machines) => {
      const { send, wake, hope } = choose(machines);
      if (send === undefined && wake !== undefined) expect(wake.distance).toBe(0);
      if (send === undefined && hope) expect(machines.some(({ distance }) => distance === 0)).toBe(true);
      if (send !== undefined && send.distance === 0) expect(send.state).toBe("running");
      expect(send?.reachable ?? true).toBe(true);
    }),
  );
});

test("many requests at one host are shared among the hosts by what each has open", async () => {
  const [a, b] = await startHosts("a", "b");
  const held: (() => void)[] = [];
  const waits = (name: string) => (_request: unknown, response: { end(text: string): void }) =>
    void held.push(() => response.end(name));
  const service = { concurrency: { soft_limit: 8 } };
  const one = await a.machine(waits("a"), { service });
  const two = await b.machine(waits("b"), { service });
  await Promise.all([a.hears(one.id, "running"), a.hears(two.id, "running")]);
  const asked = Array.from({ length: 12 }, () => a.ask("/"));
  await until(() => held.length === 12, "all to be at their machines");
  for (const answer of held) answer();
  const bodies = (await Promise.all(asked)).map(({ body }) => body);
  const here = bodies.filter((body) => body === "a").length;
  expect(here).toBeGreaterThanOrEqual(6);
  expect(here).toBeLessThanOrEqual(8);
});

test("when all that run are busy, a machine of another host is woken for the requests to come", async () => {
  const [a, b] = await startHosts("a", "b");
  const held: (() => void)[] = [];
  const service = { concurrency: { soft_limit: 2 } };
  await a.machine((_request, response) => void held.push(() => response.end("a")), { service });
  const two = await b.machine((_request, response) => response.end("b"), { service });
  await b.suspend(two.id);
  await a.hears(two.id, "suspended");
  const asked = [a.ask("/"), a.ask("/"), a.ask("/")];
  await b.platform.machines.wait(APP, two.id, ["running"], { timeoutMs: 5_000 });
  await a.hears(two.id, "running");
  // The third request did not wait for it.
  await until(() => held.length === 3, "three requests at host a");
  expect((await a.ask("/")).body).toBe("b");
  for (const answer of held) answer();
  expect((await Promise.all(asked)).map(({ body }) => body)).toEqual(["a", "a", "a"]);
  expect([...a.faults, ...b.faults]).toEqual([]);
});
