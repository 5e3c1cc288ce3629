/** Workers: nothing connects to them, and the job that they wait for comes over a connection of their own. */
import { HibernautError } from "@hibernaut/domain/errors";
import { expect, test, vi } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import type { ClientEnd } from "../src/contract.ts";
import { IDLE_S, useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

const WORKER = { ...SMALL, services: [], worker_idle_timeout: IDLE_S };

/** A worker that runs, and the proxy that its connections come to. */
async function worker({ network }: { network?: string } = { network: "cafe" }) {
  await w.letConnectionsSurvive();
  await w.anotherProxy();
  const { broker } = await w.anotherProxy({ forVisitors: false });
  w.platform.apps.create("jobs", { ...(network !== undefined && { network }) });
  const { record } = await w.machines.create("jobs", { config: WORKER });
  const reach = (...states: ("running" | "suspended" | "stopped")[]) =>
    w.machines.wait("jobs", record.id, states, { timeoutMs: 5000 });
  await reach("running");
  await w.settled();
  const state = () => w.machines.get("jobs", record.id).record.state;
  const connect = () => broker.connectedFrom(record.id) as ClientEnd;
  return { id: record.id, reach, state, connect };
}

const reasonOf = (id: string) => w.coordinator.activity(id)?.reason;

test("a worker that waits for an answer sleeps, and what comes back wakes it", async () => {
  const { id, reach, state, connect } = await worker();
  const queue = connect();
  await w.later(60);
  expect(state(), "something still passes").toBe("running");
  queue.quiet(true);
  await w.later(IDLE_S - 1);
  expect(reasonOf(id)).toBe("recently_used");
  queue.quiet(false);
  queue.answered();
  await w.later(60);
  expect([state(), reasonOf(id)]).toEqual(["running", "open_requests"]);
  queue.quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  await w.settled();
  queue.quiet(false);
  queue.answered();
  await reach("running");
  await w.later(60);
  expect(state(), "it has the job now").toBe("running");
});

test("a job that comes while the worker is being put to sleep calls it back", async () => {
  const { state, connect } = await worker();
  const queue = connect();
  queue.quiet(true);
  const { connected } = w;
  const asked: number[] = [];
  const last = connected.add((message) => {
    if (message.kind !== "drain") return;
    asked.push(message.question);
    // The proxy that has the connection has let go of the worker by now.
    setTimeout(() => {
      queue.quiet(false);
      queue.answered();
      setTimeout(() => connected.answered(message.question, true), 5);
    }, 5);
  });
  await w.later(IDLE_S);
  connected.remove(last);
  expect(asked).toHaveLength(1);
  expect(state()).toBe("running");
});

test("a worker without a connection stays awake, and says why", async () => {
  const { id, reach, state, connect } = await worker();
  await w.later(60);
  expect([state(), reasonOf(id)]).toEqual(["running", "not_connected"]);
  const queue = connect();
  queue.quiet(true);
  queue.release();
  await w.later(60);
  expect([state(), reasonOf(id)]).toEqual(["running", "not_connected"]);
  connect().quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
});

test("a worker whose last connection ends in its sleep is woken and told: nothing else could", async () => {
  const { id, reach, connect } = await worker();
  const told = vi.spyOn(w.machines, "disconnect");
  const [queue, database] = [connect(), connect()];
  for (const one of [queue, database]) one.quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  await w.settled();
  database.release();
  await w.settled();
  await w.later(1);
  await reach("suspended");
  expect(told).not.toHaveBeenCalled();
  queue.release();
  await w.later(1);
  await reach("running");
  expect(told).toHaveBeenCalledExactlyOnceWith("jobs", id);
});

test("a connection of a worker that sleeps is broken off once the worker is awake to notice", async () => {
  const { reach, state, connect } = await worker();
  const [queue, database] = [connect(), connect()];
  for (const one of [queue, database]) one.quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  await w.settled();
  const cut: string[] = [];
  queue.breakOff(() => cut.push(state()));
  expect(cut).toEqual([]);
  await reach("running");
  await w.settled();
  expect(cut).toEqual(["running"]);
  database.breakOff(() => cut.push("at once"));
  expect(cut).toEqual(["running", "at once"]);
});

test("a worker that was woken late has as long as its job may take to come once more", async () => {
  const { reach, state, connect } = await worker();
  const queue = connect();
  queue.quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  await w.settled();
  const start = w.machines.start.bind(w.machines);
  vi.spyOn(w.machines, "start").mockImplementationOnce((...args) => {
    w.now += 20_000;
    return start(...args);
  });
  queue.answered();
  await reach("running");
  await w.later(IDLE_S + 19);
  expect(state()).toBe("running");
  await w.later(1);
  await reach("suspended");
});

test("a cordoned worker sleeps over its job, and gets it when it is uncordoned", async () => {
  const { id, reach, state, connect } = await worker();
  const queue = connect();
  queue.quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  w.machines.cordon("jobs", id, { on: true });
  await w.settled();
  queue.answered();
  await w.settled();
  await w.later(60);
  expect(state()).toBe("suspended");
  w.machines.cordon("jobs", id, { on: false });
  await w.later(1);
  await reach("running");
});

test("a worker that slept while the platform was restarted is woken, and one that was stopped is not", async () => {
  const { id, reach, state, connect } = await worker();
  connect().quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  await w.letConnectionsSurvive();
  await w.anotherProxy();
  await w.later(1);
  expect(state(), "nothing is known of its connections yet").toBe("suspended");
  await w.anotherProxy({ forVisitors: false });
  await w.later(1);
  await reach("running");
  w.machines.stop("jobs", id);
  await reach("stopped");
  await w.later(60);
  expect(state()).toBe("stopped");
});

test("a worker for which there is no room when its job comes gets it once there is", async () => {
  const { reach, state, connect } = await worker();
  const queue = connect();
  queue.quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  await w.settled();
  const { machines } = w;
  const starts = vi.spyOn(machines, "start").mockImplementation(() => {
    throw new HibernautError("host_full", "The host has no room in memory.", { retry_after_s: 5 });
  });
  queue.quiet(false);
  queue.answered();
  queue.quiet(true);
  await w.settled();
  await w.later(1);
  await w.later(1);
  expect(state()).toBe("suspended");
  expect(starts, "once for the job, and once in vain since").toHaveBeenCalledTimes(2);
  starts.mockRestore();
  await w.later(30);
  await reach("running");
});

test("a worker that lost its memory in its sleep to a new version starts with that", async () => {
  const { id, reach, connect } = await worker();
  connect().quiet(true);
  await w.later(IDLE_S);
  await reach("suspended");
  await w.machines.update("jobs", id, { ...WORKER, env: { VERSION: "2" } });
  await w.later(1);
  await reach("running");
});

test("a stop ends a worker's connections, and does not wake it", async () => {
  const { id, reach, state, connect } = await worker();
  const queue = connect();
  w.machines.stop("jobs", id);
  await reach("stopped");
  await w.settled();
  queue.answered();
  queue.release();
  await w.settled();
  await w.later(1);
  expect(state()).toBe("stopped");
});

test("outside a network nothing shows that a worker waits, and it stays awake", async () => {
  const { id, state } = await worker({});
  await w.later(60);
  expect([state(), reasonOf(id)]).toEqual(["running", "no_service"]);
});
