/** What machines did, over HTTP and from a store that was written as machines changed. */
import type { MachineEvent, MachineState } from "@hibernaut/domain/machine";
import { KEPT_CHANGES } from "@hibernaut/domain/timeline";
import { beforeEach, describe, expect, test } from "vitest";
import type { ControllerSet } from "../../machines/src/controller-set.ts";
import { Timelines } from "../../machines/src/resources/timelines.ts";
import { machineRecord } from "../../store/test/helpers.ts";
import { createToken } from "../src/tokens.ts";
import { as, type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let server: TestApi;
let call: Call;
beforeEach(async () => {
  ({ server, call } = await testApi());
});

async function machine(app = "shop", name = "web"): Promise<string> {
  const { body } = await call("POST", `/v1/apps/${app}/machines`, { name, config: { image: "x" } });
  await reach(app, body.id, "running");
  return body.id;
}

const reach = (app: string, id: string, state: string) =>
  call("GET", `/v1/apps/${app}/machines/${id}/wait?state=${state}`);
const act = (id: string, action: string) => call("POST", `/v1/apps/shop/machines/${id}/${action}`);
const states = (spans: readonly { state: string }[]) => spans.map(({ state }) => state);

describe("a machine's chart", () => {
  test("has every sleep and wake, from its creation to now", async () => {
    const id = await machine();
    await act(id, "suspend");
    await reach("shop", id, "suspended");
    await act(id, "start");
    await reach("shop", id, "running");
    await act(id, "stop");
    await reach("shop", id, "stopped");
    const { body } = await call("GET", "/v1/timeline?hours=1");
    const [chart] = body.machines;
    expect(chart).toMatchObject({ app_name: "shop", machine_id: id, name: "web", state: "stopped", wakes_left_out: 0 });
    // Created, it was stopped for a moment that may be too short to count.
    expect(states(chart.spans).join(" ")).toMatch(
      /^(stopped )?running (suspended|warm|warm suspended) running stopped$/,
    );
    expect(chart.wakes).toMatchObject([
      { kind: "cold", duration_ms: expect.any(Number) },
      { kind: expect.stringMatching(/resume|warm/), reason: expect.any(String) },
    ]);
    const created = (await call("GET", `/v1/apps/shop/machines/${id}`)).body.created_at;
    expect(chart.spans[0].from).toBe(created);
    expect(chart.spans.at(-1).until).toBe(body.until);
  });

  test("of a destroyed machine is gone, and its wakes are still counted", async () => {
    const id = await machine();
    await call("DELETE", `/v1/apps/shop/machines/${id}?force=true`);
    await reach("shop", id, "destroyed");
    expect((await call("GET", "/v1/timeline")).body.machines).toEqual([]);
    const { body } = await call("GET", "/v1/wakes?hours=1");
    expect(body.hours).toMatchObject([{ kinds: { cold: { count: 1 } } }]);
  });

  test("that slept for longer than the store remembers is one span of sleep", async () => {
    const id = insert({ createdAt: ago(20 * 24 * HOUR_MS) });
    change(id, "created", "starting", ago(20 * 24 * HOUR_MS));
    change(id, "starting", "running", ago(20 * 24 * HOUR_MS));
    change(id, "running", "suspended", ago(19 * 24 * HOUR_MS));
    const { spans } = await stored(id, 24);
    expect(states(spans)).toEqual(["suspended"]);
  });

  test.each([
    ["running", "suspending", "running"],
    ["running", "stopping", "running"],
    ["running", "updating", "running"],
    ["suspended", "updating", "suspended"],
  ] as const)("that was %s for days and is %s now is %s", async (lasting, passing, shown) => {
    const id = insert({ createdAt: ago(72 * HOUR_MS) });
    change(id, "created", "starting", ago(71 * HOUR_MS));
    change(id, "starting", "running", ago(71 * HOUR_MS));
    if (lasting === "suspended") change(id, "running", "suspended", ago(70 * HOUR_MS));
    change(id, lasting, passing, ago(1000));
    expect(states((await asItIs(id, 24)).spans)).toEqual([shown]);
  });

  test("of a machine that ran for longer than the store remembers says so while it is suspended, and after it", async () => {
    const id = insert({ createdAt: ago(72 * HOUR_MS) });
    change(id, "running", "suspending", ago(2000));
    expect(states((await asItIs(id, 24)).spans)).toEqual(["running"]);
    change(id, "suspending", "suspended", ago(1000));
    expect(states((await asItIs(id, 24)).spans)).toEqual(["running", "suspended"]);
  });

  test("is bounded, however often a machine sleeps and wakes, and begins where it is known", async () => {
    const id = insert({ createdAt: ago(HOUR_MS) });
    const turns = KEPT_CHANGES + 300;
    for (let turn = 0; turn < turns; turn += 1) {
      const at = ago(HOUR_MS - turn * 1000);
      if (turn % 2 === 0) change(id, "suspended", "starting", at);
      else change(id, "running", "suspended", at);
    }
    const rows = server.world.store.timeline.states(id, 0);
    expect(rows.length).toBeGreaterThanOrEqual(KEPT_CHANGES);
    expect(rows.length).toBeLessThan(KEPT_CHANGES + 100);
    const { spans } = await stored(id, 24);
    expect(spans.length).toBeLessThanOrEqual(200);
    expect(Date.parse(spans[0]?.from ?? "")).toBe(rows[0]?.at);
  });
});

describe("wakes by the hour", () => {
  test("have counts and latencies of each kind, and nothing of a kind without any", async () => {
    const id = insert({ createdAt: ago(5 * HOUR_MS) });
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
    for (let count = 1; count <= 100; count += 1) wake(id, { at: hour + count * 1000, kind: "resume", ms: count });
    wake(id, { at: hour + HOUR_MS - 1, kind: "cold", ms: 9000 });
    wake(id, { at: hour - 1, kind: "warm", ms: 3 });
    const { body } = await call("GET", "/v1/wakes?hours=3");
    expect(body.hours).toHaveLength(3);
    expect(body.hours[0]).toMatchObject({ kinds: { warm: { count: 1, p50_ms: 3 } } });
    expect(body.hours[1]).toEqual({
      from: new Date(hour).toISOString(),
      kinds: {
        resume: { count: 100, p50_ms: 50, p99_ms: 99 },
        cold: { count: 1, p50_ms: 9000, p99_ms: 9000 },
      },
    });
    expect(body.hours[2].kinds).toEqual({});
  });
});

test("a limited token sees the machines and wakes of its apps, and no others", async () => {
  await call("POST", "/v1/apps", { app_name: "bank" });
  const own = await machine();
  await machine("bank", "vault");
  const init = as(createToken(server.tokens, "shop", { scopes: ["read"], apps: ["shop"] }).token);
  for (const path of ["/v1/timeline", "/v1/timeline?app=shop"])
    expect((await call("GET", path, undefined, init)).body.machines).toMatchObject([{ machine_id: own }]);
  expect((await call("GET", "/v1/wakes?hours=1", undefined, init)).body.hours[0].kinds.cold.count).toBe(1);
  expect((await call("GET", "/v1/wakes?hours=1")).body.hours[0].kinds.cold.count).toBe(2);
  expect((await call("GET", "/v1/wakes?hours=1&app=bank")).body.hours[0].kinds.cold.count).toBe(1);
  for (const path of ["/v1/timeline?app=bank", "/v1/wakes?app=bank", "/v1/timeline?app=none"])
    expect(await call("GET", path, undefined, init), path).toMatchObject({ status: 404 });
  for (const path of ["/v1/timeline?hours=0", "/v1/wakes?hours=169", "/v1/timeline?hours=x", "/v1/wakes?from=1"])
    expect(await call("GET", path), path).toMatchObject({ status: 400 });
});

function ago(ms: number): number {
  return Date.now() - ms;
}

/** A machine of the store alone, whose past the test writes. */
function insert({ createdAt }: { createdAt: number }): string {
  const at = new Date(createdAt).toISOString();
  const record = machineRecord({ id: "00000000000001", name: "old", createdAt: at });
  server.world.store.machines.insert(record, { at, type: "create", from: null, to: "created", details: {} });
  return record.id;
}

function change(id: string, from: MachineState, to: MachineState, at: number, event: Partial<MachineEvent> = {}): void {
  const { machines } = server.world.store;
  const record = machines.get(id);
  if (record === undefined) throw new Error("there is no such machine");
  const told = { at: new Date(at).toISOString(), type: "test", from, to, details: {}, ...event };
  machines.update({ ...record, state: to }, told, { unsynced: true });
}

function wake(id: string, { at, kind, ms }: { at: number; kind: "warm" | "resume" | "cold"; ms: number }): void {
  const { machines } = server.world.store;
  const record = machines.get(id);
  if (record === undefined) throw new Error("there is no such machine");
  const lastBoot = { kind, reason: "test", at: new Date(at).toISOString(), duration_ms: ms };
  const event = { at: lastBoot.at, type: "started", from: "starting", to: "running", details: {} } as const;
  machines.update({ ...record, state: "running", lastBoot }, event, { unsynced: true });
}

/** The chart of a machine that stays as the test wrote it: the platform would bring it out of a passing state. */
async function asItIs(id: string, hours: number) {
  const { machines, timeline } = server.world.store;
  const all = () => [{ record: machines.get(id) }];
  const controllers = { all, warm: { since() {} }, warmHistory: { write() {} } } as unknown as ControllerSet;
  const [chart] = (await new Timelines(timeline, controllers, Date.now).read(() => true, hours)).machines;
  if (chart === undefined) throw new Error("there is no chart");
  return chart;
}

/** The chart of a machine that the platform finds when it starts. */
async function stored(id: string, hours: number) {
  await server.platform.recover();
  const { body } = await call("GET", `/v1/timeline?hours=${hours}`);
  const chart = body.machines.find(({ machine_id: each }: { machine_id: string }) => each === id);
  return chart as { spans: { state: string; from: string; until: string }[] };
}
