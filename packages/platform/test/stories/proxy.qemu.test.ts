/** Requests wake machines, silence lets them sleep: on real machines, through the real proxy. */
import { expect, test, vi } from "vitest";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";

const place = Place.forTests({ HIBERNAUT_IDLE_CHECK_INTERVAL: "1", HIBERNAUT_USAGE_INTERVAL: "1" });

const target = (app = place.app) => ({ proxyUrl: place.proxyUrl, app });
const service = (more = {}) => ({ services: [{ internal_port: 8080, autostop: "suspend" as const, ...more }] });
const destroy = async (id: string) => {
  await place.client.destroyMachine(place.app, id, { force: true });
  await place.reach(id, "destroyed");
};

test("a suspended machine's own process answers, and says that it was resumed; 200 requests at once are one resume", async () => {
  const { machine_id: id } = await place.machine(service({ concurrency: { soft_limit: 1000 } }));
  const before = await ask(target());
  expect(wakeOf(before)).toEqual({ kind: "running", ms: 0 });
  await place.suspend(id);
  const after = await ask(target());
  expect(after.status).toBe(200);
  expect(wakeOf(after).kind).toBe("resume");
  expect(wakeOf(after).ms).toBeGreaterThan(0);
  expect(counterOf(after)).toMatchObject({ nonce: counterOf(before).nonce, count: 2 });
  expect(Math.abs(Date.parse(counterOf(after).now) - Date.now())).toBeLessThan(500);

  await place.suspend(id);
  const answers = await Promise.all(Array.from({ length: 200 }, () => ask(target())));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  const counts = answers.map((answer) => counterOf(answer).count).toSorted((a, b) => a - b);
  expect(counts).toEqual(Array.from({ length: 200 }, (_, index) => index + 3));
  const resumes = (await place.client.listMachineEvents(place.app, id, { limit: 100 })).filter(
    ({ details }) => details.kind === "resume",
  );
  expect(resumes).toHaveLength(2);
  await destroy(id);
});

test("an idle machine sleeps within its time, an open request keeps it awake, and a custom hostname wakes it", async () => {
  const { machine_id: id } = await place.machine(service({ idle_timeout: 1 }));
  expect((await ask(target(), "/wait/4000")).text).toBe("began ended");
  const suspends = async () =>
    (await place.client.listMachineEvents(place.app, id, { limit: 20 })).filter(({ type }) => type === "suspend");
  expect(await suspends()).toEqual([]);
  await place.reach(id, "suspended");
  expect((await suspends())[0]?.details).toMatchObject({ by: "proxy" });
  await place.client.addHostname(place.app, "www.Example.com");
  const named = await ask({ ...target(), host: "www.example.com" }, "/wait/1");
  expect([named.status, wakeOf(named).kind]).toEqual([200, "resume"]);
  await destroy(id);
});

test("metrics and events tell of wakes", async () => {
  const text = await place.metrics();
  expect(text).toMatch(/hibernaut_proxy_wake_seconds_count\{app="shop",kind="resume"\} [1-9]/);
  expect(text).toMatch(/hibernaut_proxy_requests_total\{app="shop",status="2xx"\} \d{3}/);
  expect(text).toMatch(/hibernaut_usage_wakes_total\{app="shop",kind="resume"\} [1-9]/);
});

test("usage tells what the machines that are gone used", async () => {
  const { usage } = await place.client.getUsage({ group_by: "machine", app: place.app });
  expect(usage.length).toBeGreaterThan(1);
  for (const machine of usage) expect(machine.running_seconds, machine.machine_id ?? "").toBeGreaterThan(0);
  const total = async () => (await place.client.getUsage({ app: place.app })).total;
  expect((await total()).snapshot_gb_seconds).toBeGreaterThan(0);
  // Stored within a second or two of the last answer.
  await vi.waitFor(async () => expect((await total()).proxied_bytes.out).toBeGreaterThan(200), { timeout: 10_000 });
});

test("a machine that is set to stop is stopped when idle, and cold starts for the next request", {
  tags: "again",
}, async () => {
  const { machine_id: id } = await place.machine(service({ autostop: "stop", idle_timeout: 1 }));
  const before = await ask(target());
  await place.reach(id, "stopped");
  const after = await ask(target());
  expect([after.status, wakeOf(after).kind]).toEqual([200, "cold"]);
  expect(counterOf(after).nonce).not.toBe(counterOf(before).nonce);
  const text = await place.metrics();
  expect(text).toMatch(/hibernaut_proxy_wake_seconds_count\{app="shop",kind="cold"\} [1-9]/);
  expect(text).toMatch(/hibernaut_usage_wakes_total\{app="shop",kind="cold"\} [1-9]/);
  await destroy(id);
});
