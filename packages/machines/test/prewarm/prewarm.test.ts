/** A new version of a sleeping machine that runs once before anyone needs it. On a fake host. */
import type { CheckResult } from "@hibernaut/domain/check";
import type { MachineConfig } from "@hibernaut/domain/config";
import type { Prewarm } from "@hibernaut/domain/machine";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import type { WaitTarget } from "../../src/waiting.ts";
import { shopForEach } from "../shop.ts";

const TIMEOUT = { timeoutMs: 5000 };
const NEW: MachineConfig = { ...SMALL, image: "app:2" };
const CHECKED: MachineConfig = { ...NEW, checks: { web: { type: "http", port: 8080 } } };

let results: CheckResult[];
let id: string;
const listeners = new Set<(id: string) => void>();
const shop = shopForEach({
  wrap: (deps) => ({
    ...deps,
    checkResults: () => results,
    subscribeToChecks(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  }),
});
beforeEach(async () => {
  results = [];
  id = await shop.run();
});

const record = () => shop.record(id);
const reach = (...targets: WaitTarget[]) => shop.reach(id, ...targets);

async function update(config: MachineConfig, prewarm: Prewarm["until"] = "healthy"): Promise<void> {
  await shop.machines.update("shop", id, config, { prewarm });
}

/** The prewarm does not end. */
const stillPending = () =>
  expect(shop.machines.wait("shop", id, ["prewarmed"], { timeoutMs: 50 })).rejects.toThrow("failed to reach");

function checked(status: CheckResult["status"]): void {
  results = [{ name: "web", status, output: "503 not yet", updated_at: "" }];
  for (const listener of listeners) listener(id);
}

describe("a sleeping machine that is updated with a prewarm", () => {
  beforeEach(() => shop.suspend(id));

  test("runs the new version, and sleeps again with a snapshot of it, from which the next start resumes", async () => {
    await update(NEW);
    expect(record().prewarm).toMatchObject({ status: "pending", until: "healthy" });
    await reach("prewarmed");
    await reach("suspended");
    expect(record()).toMatchObject({
      config: { image: "app:2" },
      prewarm: { status: "done", reason: null },
      snapshot: { generation: expect.any(String) },
      lastBoot: { kind: "cold", reason: "updated" },
    });
    const asked = shop.events(id, "suspend")[0];
    expect(asked?.details).toEqual({ by: "prewarm" });
    shop.machines.start("shop", id);
    await reach("running");
    expect(record().lastBoot?.kind).toBe("resume");
  });

  test("waits for the checks of the new version", async () => {
    await update(CHECKED);
    await reach("running");
    checked("warning");
    await stillPending();
    checked("passing");
    await reach("suspended");
    expect(record().snapshot).not.toBeNull();
  });

  test("sleeps when it has been healthy for a while, unless a program in it says that it need not wait", async () => {
    await shop.restart({ settings: { prewarmSettleMs: 60_000 } });
    await update(NEW);
    await reach("running");
    await stillPending();
    expect(shop.platform.guestApi.prepared(id)).toBe(true);
    await reach("suspended");
    await shop.restart({ settings: { prewarmSettleMs: 50 } });
    await update({ ...NEW, image: "app:3" });
    await reach("prewarmed");
    await reach("suspended");
    expect(record().prewarm).toMatchObject({ status: "done" });
  });

  test("is stopped when a check fails for good, and says why", async () => {
    await update(CHECKED);
    await reach("running");
    checked("critical");
    await reach("prewarmed");
    await reach("stopped");
    const reason = "its check web fails: 503 not yet";
    expect(record()).toMatchObject({ prewarm: { status: "failed", reason }, snapshot: null });
    const asked = shop.events(id, "stop")[0];
    expect(asked?.details).toEqual({ by: "prewarm", reason });
  });

  test("is stopped when the new version crashes, and keeps what is known of the crash", async () => {
    shop.host.crashing.add(id);
    await update(NEW);
    await reach("prewarmed");
    await vi.waitFor(() => expect(record().state).toBe("stopped"), TIMEOUT.timeoutMs);
    expect(record()).toMatchObject({
      prewarm: { status: "failed", reason: expect.stringContaining("it crashed on start") },
      crash: { at_start: true },
    });
  });

  test("fails when the virtual machine cannot be started", async () => {
    shop.host.faults.boot = new Error("no memory");
    await update(NEW);
    await reach("prewarmed");
    expect(record()).toMatchObject({
      state: "failed",
      prewarm: { status: "failed", reason: expect.stringContaining("no memory") },
    });
  });

  test("that waits for a program in it sleeps when that has said so, and not before", async () => {
    await update(NEW, "prepared");
    await reach("running");
    await stillPending();
    expect(shop.platform.guestApi.prepared(id)).toBe(true);
    await reach("suspended");
    expect(record().prewarm).toMatchObject({ status: "done" });
    expect(shop.platform.guestApi.prepared(id), "nothing waits for it now").toBe(false);
  });

  test("a program may also say it before the checks have passed", async () => {
    await update(CHECKED);
    await reach("running");
    expect(shop.platform.guestApi.prepared(id)).toBe(true);
    await reach("suspended");
  });

  test("is left to a start that comes in between", async () => {
    shop.world.holdBoots();
    await update(NEW);
    await vi.waitFor(() => expect(record().state).toBe("starting"), TIMEOUT.timeoutMs);
    shop.machines.start("shop", id, { by: "proxy" });
    await reach("prewarmed");
    shop.world.releaseBoots();
    await reach("running");
    expect(record().prewarm).toMatchObject({ status: "taken", reason: "a request came first" });
    expect(shop.events(id, "suspend")).toHaveLength(1);
  });

  test("is stopped once it works, if it cannot be suspended", async () => {
    await update({ ...NEW, guest: { memory_mb: 4096 } });
    await reach("prewarmed");
    await reach("stopped");
    expect(record().prewarm).toMatchObject({
      status: "done",
      reason: expect.stringMatching(/it works, and cannot be suspended: .*2048/),
    });
  });

  test("continues with the next platform", async () => {
    await update(CHECKED);
    await reach("running");
    await shop.restart();
    expect(record().prewarm).toMatchObject({ status: "pending" });
    checked("passing");
    await reach("suspended");
    expect(record()).toMatchObject({ prewarm: { status: "done" }, snapshot: { generation: expect.any(String) } });
  });

  test("that has had its time by then is stopped", async () => {
    await update(CHECKED);
    await reach("running");
    await shop.restart({ settings: { prewarmTimeoutMs: 1 } });
    await reach("stopped");
    expect(record().prewarm?.reason).toMatch(/^it was not ready within 0\.001 s: /);
  });
});

test("a stopped machine sleeps with a snapshot afterwards", async () => {
  shop.machines.stop("shop", id);
  await reach("stopped");
  await update(NEW);
  await reach("suspended");
  expect(record().prewarm?.status).toBe("done");
});
