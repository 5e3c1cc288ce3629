/** What the metrics look at: queues, room, readers of events, the event loop, what cannot be stored. */
import { rm } from "node:fs/promises";
import { processMetrics } from "@hibernaut/telemetry";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { hostMetrics } from "../../src/metrics/host.ts";
import { newWorld, runningMachine, SMALL, startPlatform } from "../helpers/fake-world.ts";
import { tempFolder } from "../helpers/temp.ts";
import { parseScrape } from "./documents.ts";
import { metricsWorld } from "./world.ts";

const PATIENT = { timeout: 20_000 };
const PATIENT_WAIT = { timeoutMs: 20_000 };
const MB = 1024 * 1024;

function valueOf(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const fits = (found: Record<string, string>) => Object.entries(labels).every(([key, said]) => found[key] === said);
  return parseScrape(text).samples.find((one) => one.name === name && fits(one.labels))?.value;
}

test("an event loop that is held shows in its histogram", async () => {
  const registry = new Registry();
  onTestFinished(processMetrics(registry));
  const slow = async () => {
    const { samples } = parseScrape(await registry.metrics());
    const buckets = samples.filter(({ name }) => name === "hibernaut_event_loop_delay_seconds");
    const upTo = (le: string) => buckets.find(({ labels }) => labels.le === le)?.value ?? 0;
    return upTo("+Inf") - upTo("0.25");
  };
  const before = await slow();
  const held = performance.now() + 600;
  while (performance.now() < held); // what a bug would do
  await vi.waitFor(async () => expect(await slow()).toBeGreaterThan(before), PATIENT);
});

test("the process has the numbers that its host has", async () => {
  const registry = new Registry();
  onTestFinished(processMetrics(registry));
  const text = await registry.metrics();
  expect(valueOf(text, "process_resident_memory_bytes")).toBeGreaterThan(10 * MB);
  expect(valueOf(text, "process_open_fds")).toBeGreaterThan(3);
  expect(valueOf(text, "process_max_fds")).toBeGreaterThan(100);
  expect(Math.abs(Date.now() / 1000 - (valueOf(text, "process_start_time_seconds") ?? 0))).toBeLessThan(3600);
  const cpu = valueOf(text, "process_cpu_seconds_total") ?? Number.NaN;
  expect(valueOf(await registry.metrics(), "process_cpu_seconds_total")).toBeGreaterThanOrEqual(cpu);
});

test("what the kernel does not say, and a disk that is gone, is left out and not called zero", async () => {
  const registry = new Registry();
  const folder = await tempFolder("host");
  hostMetrics(registry, { dataDir: folder, available: () => undefined, room: () => undefined });
  const found = async () => new Set(parseScrape(await registry.metrics()).samples.map(({ name }) => name));
  expect(await found()).toEqual(
    new Set(["hibernaut_host_memory_bytes", "hibernaut_disk_size_bytes", "hibernaut_disk_available_bytes"]),
  );
  await rm(folder, { recursive: true });
  expect(await found()).toEqual(new Set(["hibernaut_host_memory_bytes"]));
});

test("starts that wait are in the queues: for their turn to boot, and for room in memory", async () => {
  const world = await newWorld();
  let available = 100_000 * MB;
  const platform = await startPlatform(world, {
    bootSlots: 1,
    settings: { memoryReserveMb: 100, memoryOvercommit: 100 },
    wrap: (deps) => ({ ...deps, hostMemory: { available: () => available } }),
  });
  onTestFinished(async () => {
    world.releaseBoots();
    await platform.close();
    await world.dispose();
  });
  platform.apps.create("shop");
  world.holdBoots();
  const made = [];
  for (let count = 0; count < 3; count += 1)
    made.push((await platform.machines.create("shop", { config: SMALL })).record.id);
  await vi.waitFor(() => expect(platform.workload()).toMatchObject({ operations: 3, bootSlots: 2, room: 0 }), PATIENT);
  // Three guests of 128 MB are awake, and what their processes take while they start.
  const room = platform.workload().roomBytes ?? Number.NaN;
  expect(room).toBeLessThan(available - (100 + 3 * 128) * MB);
  expect(room).toBeGreaterThan(available - 2000 * MB);
  world.releaseBoots();
  for (const id of made) await platform.machines.wait("shop", id, ["running"], PATIENT_WAIT);
  await vi.waitFor(() => expect(platform.workload()).toMatchObject({ operations: 0, bootSlots: 0 }), PATIENT);
  available = 0;
  expect(platform.workload().roomBytes).toBeLessThan(0);
});

test("starts that are never refused have no room that could run out", async () => {
  const world = await newWorld();
  const platform = await startPlatform(world, { settings: { memoryOvercommit: 0 } });
  onTestFinished(async () => {
    await platform.close();
    await world.dispose();
  });
  expect(platform.workload().roomBytes).toBeUndefined();
});

test("what cannot be stored is counted until it is", async () => {
  const { world, platform, scrape } = await metricsWorld();
  const id = await runningMachine(platform);
  const unstored = async () => valueOf(await scrape(), "hibernaut_unstored_outcomes");
  expect(await unstored()).toBe(0);
  const update = vi.spyOn(world.store.machines, "update").mockImplementation(() => {
    throw new Error("database or disk is full");
  });
  world.host.guest(id)?.exit(1);
  await vi.waitFor(async () => expect(await unstored()).toBe(1), PATIENT);
  update.mockRestore();
  await vi.waitFor(async () => expect(await unstored()).toBe(0), PATIENT);
});

test("readers of events are counted, with how far the slowest one is behind", async () => {
  const { platform, stream, world } = await metricsWorld();
  platform.apps.create("shop");
  expect(stream.readers()).toEqual({ count: 0, lag: 0 });
  const stop = new AbortController();
  const reader = stream.read({ types: [] }, { since: 0 }, { follow: true, signal: stop.signal });
  await reader.next(); // where it begins
  const first = stream.readers();
  expect(first).toMatchObject({ count: 1, lag: world.store.outbox.newest() });
  expect(first.lag).toBeGreaterThan(0);
  await reader.next(); // everything so far
  const rest = reader.next(); // it has taken that, and waits for more
  await vi.waitFor(() => expect(stream.readers()).toEqual({ count: 1, lag: 0 }), PATIENT);
  stop.abort();
  await rest;
  await vi.waitFor(() => expect(stream.readers()).toEqual({ count: 0, lag: 0 }), PATIENT);
});
