import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newWorld, runningMachine, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import type { Resources } from "../src/open.ts";
import type { Machines } from "../src/resources/machines.ts";
import type { WaitTarget } from "../src/waiting.ts";

let world: World;
let platform: Resources;
let machines: Machines;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
  ({ machines } = platform);
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const VALUE = "s3cret-value";
const reach = (id: string, ...targets: WaitTarget[]) => machines.wait("shop", id, targets, { timeoutMs: 5000 });
const record = (id: string) => machines.get("shop", id).record;
const env = (id: string) => world.host.guest(id)?.env ?? {};
const suspended = async (id: string) => {
  machines.suspend("shop", id);
  await reach(id, "suspended");
};
const started = async (id: string) => {
  machines.start("shop", id);
  await reach(id, "running");
};
const generations = (id: string) => readdirSync(join(world.folder, "machines", id, "snapshots"));

describe("a suspended machine", () => {
  test("stays suspended without its snapshot, and cold starts with the new secrets", async () => {
    const id = await runningMachine(platform);
    await suspended(id);
    const before = record(id);
    expect(platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [id], pending: [] });
    expect(record(id)).toMatchObject({ state: "suspended", snapshot: null });
    await expect.poll(() => generations(id)).toEqual([]);
    const { version, config, bundleVersion, resetLayer } = before;
    expect(record(id)).toMatchObject({ snapshot: null, pending: null, version, config, bundleVersion, resetLayer });
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: "secrets_changed" });
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
  });

  test("also loses its snapshot to an unset", async () => {
    const id = await runningMachine(platform);
    platform.secrets.set("shop", { TOKEN: VALUE });
    await suspended(id);
    expect(platform.secrets.unset("shop", "TOKEN")).toEqual({ discarded: [id], pending: [] });
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: "secrets_changed" });
    expect(env(id)).not.toHaveProperty("TOKEN");
  });

  test("does not move to another guest bundle", async () => {
    const id = await runningMachine(platform);
    await suspended(id);
    await platform.close();
    world.bundleVersion = "bundle-2";
    platform = await startPlatform(world);
    ({ machines } = platform);
    platform.secrets.set("shop", { TOKEN: VALUE });
    await reach(id, "suspended");
    expect(record(id).bundleVersion).toBe("bundle-1");
  });

  test("keeps its snapshot in a dry run, when nothing changes, and when the app is another one", async () => {
    const id = await runningMachine(platform);
    platform.secrets.set("shop", { TOKEN: VALUE });
    platform.apps.create("blog");
    await suspended(id);
    expect(platform.secrets.set("shop", { TOKEN: "new" }, { dryRun: true })).toEqual({ discarded: [id], pending: [] });
    expect(platform.secrets.unset("shop", "TOKEN", { dryRun: true })).toEqual({ discarded: [id], pending: [] });
    expect(platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [], pending: [] });
    expect(platform.secrets.set("blog", { TOKEN: "new" })).toEqual({ discarded: [], pending: [] });
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("that is started right after cold starts; one that was started before has resumed", async () => {
    const id = await runningMachine(platform);
    await suspended(id);
    platform.secrets.set("shop", { TOKEN: VALUE });
    await started(id);
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
    expect(world.host.restored).toEqual([]);
    await suspended(id);
    machines.start("shop", id);
    await expect.poll(() => world.host.restored).toHaveLength(1);
    expect(platform.secrets.set("shop", { TOKEN: "late" })).toEqual({ discarded: [], pending: [id] });
    await reach(id, "running");
    expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("whose start failed but kept the snapshot loses it too, and still says why it failed", async () => {
    const id = await runningMachine(platform);
    await suspended(id);
    world.host.faults.restore = new HibernautError("unavailable", "no memory for QEMU");
    machines.start("shop", id);
    await reach(id, "failed");
    expect(record(id).snapshot).not.toBeNull();
    expect(platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [id], pending: [] });
    await reach(id, "failed");
    expect(record(id)).toMatchObject({ snapshot: null, stateReason: expect.stringContaining("no memory for QEMU") });
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: "secrets_changed" });
  });

  test("does not resume a snapshot that survived the change, as after a kill of the platform", async () => {
    const id = await runningMachine(platform);
    await suspended(id);
    await platform.close();
    platform = await startPlatform(world, {
      wrap: (deps) => {
        deps.secrets.set("shop", { TOKEN: VALUE });
        return deps;
      },
    });
    ({ machines } = platform);
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: expect.stringMatching(/^secrets_changed: /) });
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
  });
});

describe("a running machine", () => {
  test("keeps what it has, even across a suspend, until it is restarted", async () => {
    const id = await runningMachine(platform);
    expect(platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [], pending: [id] });
    expect(env(id)).not.toHaveProperty("TOKEN");
    await suspended(id);
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
    machines.restart("shop", id);
    await reach(id, "running");
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
  });

  test("that is being suspended counts as running", async () => {
    const id = await runningMachine(platform);
    const { promise, resolve } = Promise.withResolvers<void>();
    world.host.hold.capture = promise;
    machines.suspend("shop", id);
    await expect.poll(() => world.host.of(id)[0]?.running).toBe(false);
    expect(platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [], pending: [id] });
    resolve();
    await reach(id, "suspended");
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
  });
});

test("a cold start without the key fails with an explanation, and costs nothing", async () => {
  const id = await runningMachine(platform);
  platform.secrets.set("shop", { TOKEN: VALUE });
  await suspended(id);
  platform.secrets.set("shop", { TOKEN: "other" });
  await reach(id, "suspended");
  rmSync(join(world.folder, "secrets.key"));
  machines.start("shop", id);
  await reach(id, "failed");
  expect(record(id).stateReason).toContain("secrets.key, is missing");
  expect(record(id).resetLayer).toBe(false);
  expect(platform.secrets.list("shop")).toHaveLength(1);
});

test("no secret is in a record, an event, a log or a file of the host", async () => {
  const id = await runningMachine(platform);
  platform.secrets.set("shop", { TOKEN: VALUE });
  await suspended(id);
  platform.secrets.set("shop", { OTHER: VALUE });
  await started(id);
  machines.restart("shop", id);
  await reach(id, "running");
  expect(env(id)).toMatchObject({ TOKEN: VALUE, OTHER: VALUE });
  const { spec } = world.host.of(id)[0] ?? {};
  const seen = [machines.get("shop", id), machines.events("shop", id, 1000), platform.secrets.list("shop"), spec];
  expect(JSON.stringify([seen, world.logged])).not.toContain(VALUE);
  for (const file of readdirSync(world.folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || file.name === "memory") continue;
    expect(readFileSync(join(file.parentPath, file.name)).includes(VALUE), file.name).toBe(false);
  }
});

test("a deleted app leaves no secrets behind", async () => {
  platform.apps.create("shop");
  platform.secrets.set("shop", { TOKEN: VALUE });
  await machines.create("shop", { config: SMALL, skipLaunch: true });
  await platform.apps.delete("shop", { force: true });
  platform.apps.create("shop");
  expect(platform.secrets.list("shop")).toEqual([]);
  expect(() => platform.secrets.unset("shop", "TOKEN")).toThrow(expect.objectContaining({ code: "not_found" }));
});
