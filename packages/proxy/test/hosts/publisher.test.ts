/** What a host tells the others about its machines, and how often. */
import { KEYS, type PublishedMachine } from "@hibernaut/cluster/keys";
import { HibernautError } from "@hibernaut/domain/errors";
import { expect, onTestFinished, test, vi } from "vitest";
import { LoadPeaks } from "../../src/hosts/load-peaks.ts";
import { coarseLoad } from "../../src/hosts/load-steps.ts";
import { until } from "../http/helpers.ts";
import { APP, startHosts, type TestHost } from "./hosts-world.ts";

/** The states that a host writes from now on. */
function writes(host: TestHost): PublishedMachine[] {
  const all: PublishedMachine[] = [];
  const end = host.view.subscribe(KEYS.states, (changes) => {
    for (const { value } of changes) if (value !== null) all.push(JSON.parse(value) as PublishedMachine);
  });
  onTestFinished(end);
  return all;
}

test("a load is told in quarters of the soft limit, from the first request on", () => {
  expect([0, 1, 4, 5, 9, 10, 19, 20, 24, 26].map((load) => coarseLoad(load, 20))).toEqual([
    0, 1, 1, 5, 5, 10, 15, 20, 20, 25,
  ]);
  expect([0, 1, 2].map((load) => coarseLoad(load, 1))).toEqual([0, 1, 2]);
  expect([2, 3].map((load) => coarseLoad(load, 3))).toEqual([2, 3]);
});

test("a load that goes up and down with each request is told once", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const told: number[] = [];
  const loads: LoadPeaks = new LoadPeaks((id) => void told.push(loads.told(id)));
  const seconds = (count: number, busy: boolean) => {
    for (let at = 0; at < count * 10; at += 1) {
      loads.set("m", busy ? at % 2 : 0, 20);
      vi.advanceTimersByTime(100);
    }
  };
  seconds(30, true);
  expect(told).toEqual([1]);
  loads.set("m", 12, 20);
  expect(told).toEqual([1, 10]);
  seconds(10, false);
  expect(told).toEqual([1, 10, 0]);
  expect(vi.getTimerCount()).toBe(0);
});

test("a machine's states are told in order; a machine that rests or serves steadily is not told again", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine((_request, response) => response.end("b"));
  const seen = writes(a);
  await b.suspend(id);
  await a.hears(id, "suspended");
  await a.ask("/");
  await a.hears(id, "running");
  const before = seen.length;
  for (let count = 0; count < 50; count += 1) await a.ask("/");
  expect(seen.slice(before).every(({ state }) => state === "running")).toBe(true);
  expect(seen.length - before, "a load that is there for a moment, at most").toBeLessThanOrEqual(1);
  // Short states may be written together with the next one.
  expect(seen.map(({ state }) => state)).toContain("suspended");
  expect(seen.at(-1)?.state).toBe("running");
});

test("a host that starts again writes only what has changed", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine((_request, response) => response.end("b"));
  await b.suspend(id);
  await a.hears(id, "suspended");
  const seen = writes(a);
  await b.restart();
  const { status } = await a.ask("/");
  expect(status).toBe(200);
  expect(seen.map(({ state }) => state)).not.toContain("suspended");
});

test("while the directory is away, nothing is lost: the latest state is written once it is back", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine((_request, response) => response.end("b"));
  await a.hears(id, "running");
  const seen = writes(a);
  const back = b.cannotWrite(new HibernautError("unavailable", "The directory is away."));
  b.platform.machines.suspend(APP, id);
  await b.platform.machines.wait(APP, id, ["suspended"], { timeoutMs: 5_000 });
  await until(() => b.faults.length > 0, "the host to notice");
  expect(seen).toEqual([]);
  back();
  await a.hears(id, "suspended");
  expect(seen.map(({ state }) => state)).toEqual(["suspended"]);
  b.faults.length = 0;
});

test("what a host says about a machine that is another host's now is not written", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine((_request, response) => response.end("b"));
  await a.hears(id, "running");
  const seen = writes(a);
  const { name, address } = b.moving(id).record;
  await a.write(`${KEYS.machines}${id}`, { app: APP, name, host: "a", epoch: 2, address });
  await until(() => b.view.owner(id)?.host === "a", "host b to hear of it");
  b.platform.machines.suspend(APP, id);
  await b.platform.machines.wait(APP, id, ["suspended"], { timeoutMs: 5_000 });
  const other = await b.machine((_request, response) => response.end("other"));
  await a.hears(other.id, "running");
  expect(seen.every(({ epoch }) => epoch === 1)).toBe(true);
  expect(a.view.value(`${KEYS.states}${id}`)).toMatchObject({ epoch: 1, state: "running" });
});

test("a machine without a service is told with its state, and gets no requests", async () => {
  const [a, b] = await startHosts("a", "b");
  const { record } = await b.platform.machines.create(APP, { config: { image: "app:1", guest: { memory_mb: 128 } } });
  await b.platform.machines.wait(APP, record.id, ["running"], { timeoutMs: 5_000 });
  await b.claim(record.id);
  await a.hears(record.id, "running");
  expect(a.view.state(record.id)).toMatchObject({ route: null });
  expect(await a.ask("/")).toMatchObject({ status: 404 });
});
