/** docs/metrics.md and what the platform prints are the same, and no label has values without end. */
import { STATES } from "@hibernaut/domain/machine";
import { OPERATION_OUTCOMES, START_STEPS, SUSPEND_STEPS } from "@hibernaut/domain/operation";
import { QMP_FAULTS } from "@hibernaut/hypervisor/qemu/qmp";
import { AGENT_FAULTS, EVICTION_REASONS } from "@hibernaut/machines";
import { expect, test } from "vitest";
import { SMALL } from "../helpers/fake-world.ts";
import { documented, parseScrape, surprises } from "./documents.ts";
import { access, type MetricsWorld, metricsWorld } from "./world.ts";

/** Starts a machine, lets it sleep, and wakes it. */
async function live({ platform: { machines } }: MetricsWorld, app: string): Promise<string> {
  const { id } = (await machines.create(app, { config: SMALL })).record;
  const reach = (state: "running" | "suspended") => machines.wait(app, id, [state], { timeoutMs: 20_000 });
  await reach("running");
  machines.suspend(app, id);
  await reach("suspended");
  machines.start(app, id);
  await reach("running");
  return id;
}

test("every metric that is printed is documented with its labels, and every documented one is printed", async () => {
  const world = await metricsWorld();
  world.platform.apps.create("shop");
  await live(world, "shop");
  world.proxy.onAccess(access("shop"));
  world.proxy.onAccess(access("shop", { status: 504, error: "wake_timeout" }));
  world.proxy.onWake("shop", { kind: "resume", durationMs: 12 });
  world.proxy.onForwarded("b");
  const found = parseScrape(await world.scrape());
  expect(surprises(found)).toEqual([]);
  expect([...found.types.keys()].sort()).toEqual([...documented().keys()].sort());
});

test("the values of closed labels are those of the code", () => {
  const values = (metric: string, label: string) => [...(documented().get(metric)?.labels.get(label) ?? [])];
  expect(values("hibernaut_machines", "state")).toEqual(STATES.filter((state) => state !== "destroyed"));
  expect(values("hibernaut_starts_total", "outcome")).toEqual([...OPERATION_OUTCOMES]);
  expect(values("hibernaut_start_step_seconds", "step")).toEqual([...START_STEPS]);
  expect(values("hibernaut_suspend_step_seconds", "step")).toEqual([...SUSPEND_STEPS]);
  expect(values("hibernaut_qmp_errors_total", "kind")).toEqual([...QMP_FAULTS]);
  expect(values("hibernaut_agent_errors_total", "kind")).toEqual([...AGENT_FAULTS]);
  expect(values("hibernaut_warm_evictions_total", "reason").sort()).toEqual([...EVICTION_REASONS].sort());
});

test("a scrape counts what happened: a cold start, a suspend and a resume, each with its steps", async () => {
  const world = await metricsWorld();
  world.platform.apps.create("shop");
  const id = await live(world, "shop");
  world.platform.machines.suspend("shop", id);
  await world.platform.machines.wait("shop", id, ["suspended"], { timeoutMs: 20_000 });
  const { samples } = parseScrape(await world.scrape());
  const value = (name: string, labels: Record<string, string> = {}) =>
    samples.find(
      (one) => one.name === name && Object.entries(labels).every(([label, said]) => one.labels[label] === said),
    )?.value;
  expect(value("hibernaut_starts_total", { kind: "cold", outcome: "ok" })).toBe(1);
  expect(value("hibernaut_starts_total", { kind: "resume", outcome: "ok" })).toBe(1);
  expect(value("hibernaut_starts_total", { outcome: "failed" })).toBe(0);
  expect(value("hibernaut_suspends_total", { outcome: "ok" })).toBe(2);
  expect(value("hibernaut_cold_starts_total", { reason: "first_start" })).toBe(1);
  expect(value("hibernaut_snapshots")).toBe(1);
  expect(value("hibernaut_snapshot_bytes")).toBeGreaterThan(0);
  const steps = (name: string, kind?: string) =>
    new Set(samples.filter((one) => one.name === name && one.labels.kind === kind).map(({ labels }) => labels.step));
  const cold = new Set(["room", "slot", "prepare", "boot", "app", "ready"]);
  expect(steps("hibernaut_start_step_seconds", "cold")).toEqual(cold);
  const resume = new Set(["room", "check", "qemu", "load", "attach", "consume", "awake"]);
  expect(steps("hibernaut_start_step_seconds", "resume")).toEqual(resume);
  const suspend = new Set(["copy", "prepare", "quiesce", "pause", "save", "publish", "leave"]);
  expect(steps("hibernaut_suspend_step_seconds")).toEqual(suspend);
});

test("a start that fails is counted, and says that it is not known how it would have come up", async () => {
  const world = await metricsWorld();
  const { machines, apps } = world.platform;
  apps.create("shop");
  world.world.host.faults.boot = new Error("no such luck");
  const { id } = (await machines.create("shop", { config: SMALL })).record;
  await machines.wait("shop", id, ["failed"], { timeoutMs: 20_000 });
  expect(await world.scrape()).toContain('hibernaut_starts_total{kind="unknown",outcome="failed"} 1');
});

test("apps with machines that live and die add series for apps alone", { timeout: 120_000 }, async () => {
  const world = await metricsWorld();
  const { apps, machines } = world.platform;
  const series = async () => parseScrape(await world.scrape()).samples.length;
  const lives = async (app: string, count: number) => {
    apps.create(app);
    for (let made = 0; made < count; made += 1) {
      const id = await live(world, app);
      machines.destroy(app, id, { force: true });
    }
    world.proxy.onWake(app, { kind: "resume", durationMs: 5 });
    world.proxy.onAccess(access(app));
  };
  await lives("first", 1);
  const before = await series();
  await lives("second", 1);
  const perApp = (await series()) - before;
  expect(perApp).toBeLessThan(50);
  for (let count = 0; count < 20; count += 1) await lives(`app-${count}`, 2);
  expect(await series()).toBe(before + 21 * perApp);
  // What clients make up counts as one app.
  for (let count = 0; count < 500; count += 1)
    world.proxy.onAccess(access(undefined, { host: `h${count}`, status: 404, error: "unknown_host" }));
  expect(await series()).toBe(before + 21 * perApp + 2);
});
