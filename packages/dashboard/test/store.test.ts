/** What the dashboard knows after a reading and events, and who is told. */
import type { App, Machine, StreamEvent } from "@hibernaut/client";
import { describe, expect, test } from "vitest";
import { pacedFrames, Topics } from "../src/data/frames.ts";
import { machineAfter } from "../src/data/machine.ts";
import { problemsOf } from "../src/data/problems.ts";
import { nextReading } from "../src/data/refresh.ts";
import { Store, TOPIC } from "../src/data/store.ts";
import { machine } from "./a-machine.ts";

const NOW = Date.now();
const time = (ms: number) => new Date(NOW + ms).toISOString();
let sequence = 0;

function event(id: string, to: string, data: Record<string, unknown> = {}, at = 1000): StreamEvent {
  return {
    sequence: ++sequence,
    at: time(at),
    type: `machine.${to}`,
    app_name: "shop",
    machine_id: id,
    data: { to, ...data },
  };
}

/** A store that has read these machines, and runs frames by hand. */
function read(machines: readonly Machine[]) {
  const frames: (() => void)[] = [];
  const store = new Store((run) => frames.push(run));
  const apps = [{ name: "shop", created_at: time(0), machine_count: 1, urls: [], status_page: false }] satisfies App[];
  const timeline = {
    from: time(-1000),
    until: time(0),
    machines: machines.map(({ app_name, machine_id, name, state }) => ({
      app_name,
      machine_id,
      name,
      state,
      spans: [{ state: "running" as const, from: time(-1000), until: time(0) }],
      wakes: [],
      wakes_left_out: 0,
    })),
  };
  store.read({ apps, machines, timeline });
  return { store, frame: () => frames.splice(0).forEach((run) => run()) };
}

describe("the store", () => {
  test("shows a machine that falls asleep, and asks for the rest", () => {
    const { store } = read([machine({ state: "running" })]);
    expect(store.apply(event("a1", "suspended"))).toBe("a1");
    expect(store.machines.get("a1")?.state).toBe("suspended");
    expect(store.track("a1").spans.map(({ state }) => state)).toEqual(["running", "suspended"]);
  });

  test("does not draw twice what was in the reading", () => {
    const { store } = read([machine({ state: "running" })]);
    store.apply(event("a1", "suspended", {}, -500));
    expect(store.track("a1").spans.map(({ state }) => state)).toEqual(["running"]);
  });

  test("forgets machines that are destroyed, and those of an app that is deleted", () => {
    const { store } = read([machine({ machine_id: "a1" }), machine({ machine_id: "b2" })]);
    store.apply(event("a1", "destroyed"));
    expect([...store.machines.keys()]).toEqual(["b2"]);
    store.apply({ ...event("", "deleted"), type: "app.deleted", machine_id: null });
    expect([store.machines.size, store.apps.size]).toEqual([0, 0]);
  });

  test("takes what is no longer there away with a new reading", () => {
    const { store } = read([machine({ machine_id: "a1" })]);
    store.read({ apps: [], machines: [], timeline: { from: time(0), until: time(1), machines: [] } });
    expect(store.machines.size).toBe(0);
  });

  test("tells each listener once per frame, and only of its machine", () => {
    const { store, frame } = read([machine({ machine_id: "a1" }), machine({ machine_id: "b2" })]);
    frame();
    const told: string[] = [];
    for (const id of ["a1", "b2"]) store.topics.listen(TOPIC.machine(id), () => told.push(id));
    for (const to of ["suspending", "suspended", "starting"]) store.apply(event("a1", to));
    expect(told).toEqual([]);
    frame();
    expect(told).toEqual(["a1"]);
  });
});

test("an event of a template tells the pages of its app, and no others, that there is something to read", () => {
  const { store, frame } = read([machine({})]);
  frame();
  const told: string[] = [];
  for (const app of ["shop", "blog"]) store.topics.listen(TOPIC.templates(app), () => told.push(app));
  const made = { ...event("", ""), type: "template.created", machine_id: null, data: { id: "t1", machine_id: "a1" } };
  expect(store.apply(made)).toBeUndefined();
  frame();
  expect(told).toEqual(["shop"]);
});

test("a list that is read again tells only of machines that are different", () => {
  const { store, frame } = read([machine({ machine_id: "a1" }), machine({ machine_id: "b2" })]);
  frame();
  const told: string[] = [];
  for (const id of ["a1", "b2"]) store.topics.listen(TOPIC.machine(id), () => told.push(id));
  store.beginReading()([machine({ machine_id: "a1" }), machine({ machine_id: "b2", cordoned: true })], []);
  frame();
  expect(told).toEqual(["b2"]);
});

describe("a reading that arrives after events which came while it was under way", () => {
  test("does not bring a machine back that was destroyed meanwhile, or the machines of an app that was deleted", () => {
    const { store } = read([machine({ machine_id: "a1" }), machine({ machine_id: "b2" })]);
    const takeOver = store.beginReading();
    store.apply(event("a1", "destroyed"));
    takeOver([machine({ machine_id: "a1" }), machine({ machine_id: "b2" })], "others");
    expect([...store.machines.keys()]).toEqual(["b2"]);
    const takeOverLate = store.beginReading();
    store.apply({ ...event("", "deleted"), type: "app.deleted", machine_id: null });
    takeOverLate([machine({ machine_id: "b2" })], []);
    expect(store.machines.size).toBe(0);
  });

  test("does not undo what an event said, and brings what is new of the others", () => {
    const { store } = read([machine({ machine_id: "a1" }), machine({ machine_id: "b2" })]);
    const takeOver = store.beginReading();
    store.apply(event("a1", "suspended"));
    takeOver([machine({ machine_id: "a1" }), machine({ machine_id: "b2", cordoned: true })], "others");
    expect([store.machines.get("a1")?.state, store.machines.get("b2")?.cordoned]).toEqual(["suspended", true]);
    store.beginReading()([machine({ machine_id: "a1", state: "suspended", cordoned: true })], []);
    expect(store.machines.get("a1")?.cordoned).toBe(true);
  });

  test("is not taken over when everything was read meanwhile", () => {
    const { store } = read([machine({ state: "running" })]);
    const takeOver = store.beginReading();
    store.read({ apps: [], machines: [], timeline: { from: time(0), until: time(1), machines: [] } });
    takeOver([machine({ state: "running" })], []);
    expect(store.machines.size).toBe(0);
  });
});

test("a list takes away what is no longer there, but not what an event was about after the list began", () => {
  const { store } = read([machine({ machine_id: "a1" }), machine({ machine_id: "b2" })]);
  const takeOver = store.beginReading();
  store.apply(event("b2", "running"));
  takeOver([], "others");
  expect([...store.machines.keys()]).toEqual(["b2"]);
});

test("a listener that ends during a frame does not disturb the others", () => {
  let run = () => {};
  const topics = new Topics((frame) => (run = frame));
  const told: string[] = [];
  const end = topics.listen("x", () => {
    told.push("first");
    end();
  });
  topics.listen("x", () => told.push("second"));
  topics.change("x");
  run();
  topics.change("x");
  run();
  expect(told).toEqual(["first", "second", "second"]);
});

test("frames with changes keep their distance", () => {
  const frames: ((now: number) => void)[] = [];
  const waits: [run: () => void, ms: number][] = [];
  let now = 1000;
  const schedule = pacedFrames(
    (run) => frames.push(run),
    (run, ms) => waits.push([run, ms]),
    () => now,
  );
  let runs = 0;
  const change = () => schedule(() => runs++);
  change();
  frames.splice(0).forEach((run) => run(now));
  now = 1010;
  change();
  expect([runs, frames.length, waits.map(([, ms]) => ms)]).toEqual([1, 0, [50]]);
  waits.forEach(([run]) => run());
  frames.splice(0).forEach((run) => run(1060));
  expect(runs).toBe(2);
});

describe("an event", () => {
  test("of a start says how it was", () => {
    const start = { kind: "warm", reason: "snapshot", at: time(0), duration_ms: 9 };
    const after = machineAfter(machine({ state: "starting" }), event("a1", "running", { start }));
    expect(after).toMatchObject({ state: "running", last_boot: start, state_reason: null });
  });

  test("of a failure has the reason", () => {
    const after = machineAfter(machine({}), event("a1", "failed", { reason: "no memory" }));
    expect(after).toMatchObject({ state: "failed", state_reason: "no memory" });
  });

  test("of a check replaces what the check found before", () => {
    const failing = { ...event("a1", ""), type: "machine.check_critical", data: { check: "web", output: "500" } };
    const after = machineAfter(machine({}), failing);
    const again = after && machineAfter(after, { ...failing, type: "machine.check_passing" });
    expect([after?.checks[0]?.status, again?.checks.length, again?.checks[0]?.status]).toEqual([
      "critical",
      1,
      "passing",
    ]);
  });

  test("of a type that nobody knows yet changes nothing", () => {
    const before = machine({});
    expect(machineAfter(before, { ...event("a1", ""), type: "machine.danced", data: {} })).toBe(before);
  });
});

test("problems are what someone should look at, errors first", () => {
  const problems = problemsOf([
    machine({ name: "fine" }),
    machine({ name: "weak", checks: [check("warning")] }),
    machine({ name: "broken", state: "failed", state_reason: "no memory" }),
    machine({ name: "sick", checks: [check("passing"), check("critical")] }),
    machine({ name: "asleep", state: "suspended", checks: [] }),
  ]);
  expect(problems.map(({ subject, level }) => [subject, level])).toEqual([
    ["shop / broken", "error"],
    ["shop / sick", "error"],
    ["shop / weak", "warning"],
  ]);
  expect(problems[0]?.detail).toBe("no memory");
});

test("few machines are read one by one, many in a list that is not read too often", () => {
  expect([nextReading(0, 60_000), nextReading(3, 0), nextReading(50, 1_000), nextReading(50, 60_000)]).toEqual([
    "nothing",
    "single",
    "nothing",
    "list",
  ]);
});

function check(status: "passing" | "warning" | "critical") {
  return { name: status, status, output: "", updated_at: time(0) };
}
