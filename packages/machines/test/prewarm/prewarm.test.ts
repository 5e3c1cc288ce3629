/** A new version of a sleeping machine that runs once before anyone needs it. On a fake host. */
import type { CheckResult } from "@hibernaut/domain/check";
import type { MachineConfig } from "@hibernaut/domain/config";
import type { Prewarm } from "@hibernaut/domain/machine";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  SMALL,
  startPlatform,
  type World,
} from "../../../platform/test/helpers/fake-world.ts";
import type { MachineDependencies } from "../../src/dependencies.ts";

const TIMEOUT = { timeoutMs: 5000 };
const NEW: MachineConfig = { ...SMALL, image: "app:2" };
const CHECKED: MachineConfig = { ...NEW, checks: { web: { type: "http", port: 8080 } } };

let world: World;
let platform: FakePlatform;
let results: CheckResult[];
let listeners: Set<(id: string) => void>;
let id: string;

beforeEach(async () => {
  world = await newWorld();
  [results, listeners] = [[], new Set()];
  await open();
  id = await runningMachine(platform);
});
afterEach(async () => {
  world.releaseBoots();
  await platform.close();
  expect(world.host.mostPerMachine).toBe(1);
  await world.dispose();
});

async function open(settings: Partial<MachineDependencies["settings"]> = {}, more: Partial<MachineDependencies> = {}) {
  const checks: Partial<MachineDependencies> = {
    checkResults: () => results,
    subscribeToChecks(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  platform = await startPlatform(world, { settings, wrap: (deps) => ({ ...deps, ...checks, ...more }) });
}

const view = () => platform.machines.get("shop", id);
const reach = (...states: Parameters<FakePlatform["machines"]["wait"]>[2]) =>
  platform.machines.wait("shop", id, states, TIMEOUT);

async function asleep(): Promise<void> {
  platform.machines.suspend("shop", id);
  await reach("suspended");
}

async function update(config: MachineConfig, prewarm: Prewarm["until"] = "healthy"): Promise<void> {
  await platform.machines.update("shop", id, config, { prewarm });
}

function checked(status: CheckResult["status"]): void {
  results = [{ name: "web", status, output: "503 not yet", updated_at: "" }];
  for (const listener of listeners) listener(id);
}

describe("a sleeping machine that is updated with a prewarm", () => {
  beforeEach(asleep);

  test("runs the new version, and sleeps again with a snapshot of it, from which the next start resumes", async () => {
    await update(NEW);
    expect(view().record.prewarm).toMatchObject({ status: "pending", until: "healthy" });
    await reach("prewarmed");
    await reach("suspended");
    expect(view().record).toMatchObject({
      config: { image: "app:2" },
      prewarm: { status: "done", reason: null },
      snapshot: { generation: expect.any(String) },
      lastBoot: { kind: "cold", reason: "updated" },
    });
    const asked = platform.machines.events("shop", id, 20).find(({ type }) => type === "suspend");
    expect(asked?.details).toEqual({ by: "prewarm" });
    platform.machines.start("shop", id);
    await reach("running");
    expect(view().record.lastBoot?.kind).toBe("resume");
  });

  test("waits for the checks of the new version", async () => {
    await update(CHECKED);
    await reach("running");
    checked("warning");
    await expect(platform.machines.wait("shop", id, ["prewarmed"], { timeoutMs: 50 })).rejects.toThrow(
      "failed to reach",
    );
    checked("passing");
    await reach("suspended");
    expect(view().record.snapshot).not.toBeNull();
  });

  test("sleeps when it has been healthy for a while, unless a program in it says that it need not wait", async () => {
    await platform.close();
    await open({ prewarmSettleMs: 60_000 });
    await update(NEW);
    await reach("running");
    await expect(platform.machines.wait("shop", id, ["prewarmed"], { timeoutMs: 50 })).rejects.toThrow(
      "failed to reach",
    );
    expect(platform.guestApi.prepared(id)).toBe(true);
    await reach("suspended");
    await platform.close();
    await open({ prewarmSettleMs: 50 });
    await update({ ...NEW, image: "app:3" });
    await reach("prewarmed");
    await reach("suspended");
    expect(view().record.prewarm).toMatchObject({ status: "done" });
  });

  test("is stopped when a check fails for good, and says why", async () => {
    await update(CHECKED);
    await reach("running");
    checked("critical");
    await reach("prewarmed");
    await reach("stopped");
    const reason = "its check web fails: 503 not yet";
    expect(view().record).toMatchObject({ prewarm: { status: "failed", reason }, snapshot: null });
    const asked = platform.machines.events("shop", id, 20).find(({ type }) => type === "stop");
    expect(asked?.details).toEqual({ by: "prewarm", reason });
  });

  test("is stopped when the new version crashes, and keeps what is known of the crash", async () => {
    world.host.crashing.add(id);
    await update(NEW);
    await reach("prewarmed");
    await vi.waitFor(() => expect(view().record.state).toBe("stopped"), TIMEOUT.timeoutMs);
    expect(view().record).toMatchObject({
      prewarm: { status: "failed", reason: expect.stringContaining("it crashed on start") },
      crash: { at_start: true },
    });
  });

  test("fails when the virtual machine cannot be started", async () => {
    world.host.faults.boot = new Error("no memory");
    await update(NEW);
    await reach("prewarmed");
    expect(view().record).toMatchObject({
      state: "failed",
      prewarm: { status: "failed", reason: expect.stringContaining("no memory") },
    });
  });

  test("that waits for a program in it sleeps when that has said so, and not before", async () => {
    await update(NEW, "prepared");
    await reach("running");
    await expect(platform.machines.wait("shop", id, ["prewarmed"], { timeoutMs: 50 })).rejects.toThrow(
      "failed to reach",
    );
    expect(platform.guestApi.prepared(id)).toBe(true);
    await reach("suspended");
    expect(view().record.prewarm).toMatchObject({ status: "done" });
    expect(platform.guestApi.prepared(id), "nothing waits for it now").toBe(false);
  });

  test("a program may also say it before the checks have passed", async () => {
    await update(CHECKED);
    await reach("running");
    expect(platform.guestApi.prepared(id)).toBe(true);
    await reach("suspended");
  });

  test("is left to a start that comes in between", async () => {
    world.holdBoots();
    await update(NEW);
    await reach("settled", "prewarmed").catch(() => {});
    await vi.waitFor(() => expect(view().record.state).toBe("starting"), TIMEOUT.timeoutMs);
    platform.machines.start("shop", id, { by: "proxy" });
    await reach("prewarmed");
    world.releaseBoots();
    await reach("running");
    expect(view().record.prewarm).toMatchObject({ status: "taken", reason: "a request came first" });
    expect(platform.machines.events("shop", id, 20).filter(({ type }) => type === "suspend")).toHaveLength(1);
  });

  test("is destroyed like any other", async () => {
    world.holdBoots();
    await update(NEW);
    platform.machines.destroy("shop", id, { force: true });
    world.releaseBoots();
    await reach("destroyed");
  });

  test("is stopped once it works, if it cannot be suspended", async () => {
    await update({ ...NEW, guest: { memory_mb: 4096 } });
    await reach("prewarmed");
    await reach("stopped");
    expect(view().record.prewarm).toMatchObject({
      status: "done",
      reason: expect.stringMatching(/it works, and cannot be suspended: .*2048/),
    });
  });

  test("continues with the next platform", async () => {
    await update(CHECKED);
    await reach("running");
    await platform.close();
    await open();
    expect(view().record.prewarm).toMatchObject({ status: "pending" });
    checked("passing");
    await reach("suspended");
    expect(view().record).toMatchObject({ prewarm: { status: "done" }, snapshot: { generation: expect.any(String) } });
  });

  test("that has had its time by then is stopped", async () => {
    await update(CHECKED);
    await reach("running");
    await platform.close();
    await open({ prewarmTimeoutMs: 1 });
    await reach("stopped");
    expect(view().record.prewarm?.reason).toMatch(/^it was not ready within 0\.001 s: /);
  });

  test("without a prewarm sleeps on, and forgets the one before", async () => {
    await update(NEW);
    await reach("prewarmed");
    await platform.machines.update("shop", id, { ...SMALL, image: "app:3" });
    await reach("suspended");
    expect(view().record).toMatchObject({ snapshot: null, prewarm: null });
  });
});

test("a running machine is replaced as always: it needs no prewarm", async () => {
  await update(NEW);
  await reach("running");
  expect(view().record).toMatchObject({ config: { image: "app:2" } });
  expect(view().record.prewarm ?? null).toBeNull();
});

test("a stopped machine sleeps with a snapshot afterwards", async () => {
  platform.machines.stop("shop", id);
  await reach("stopped");
  await update(NEW);
  await reach("suspended");
  expect(view().record.prewarm?.status).toBe("done");
});
