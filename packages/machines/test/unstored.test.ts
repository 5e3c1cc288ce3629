/** A disk that is full when something happens to a machine: what is shown meanwhile, what is logged, and what follows. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import { healthOf } from "@hibernaut/domain/health";
import { beforeEach, describe, expect, test } from "vitest";
import type { MachineDependencies } from "../src/dependencies.ts";
import { REPEAT_LOG_MS, UnstoredLog } from "../src/unstored.ts";
import { shopForEach } from "./shop.ts";

const FULL = new HibernautError(
  "unavailable",
  "The platform cannot write its database (database or disk is full). Free some disk space and try again.",
  { cause: "SQLITE_FULL", reason: "database or disk is full" },
);
/** Enough attempts to see that the log does not repeat itself. They take 0.7 s. */
const ATTEMPTS = 4;
const CANNOT = "an outcome cannot be stored; trying again until it can";

/** Thrown by every write to a machine's record, while there is one. */
let fault: Error | undefined;
let refused = 0;

/** Machines whose records cannot be written while there is a fault. */
function faulty(deps: MachineDependencies): MachineDependencies {
  const { machines } = deps.store;
  const update: typeof machines.update = (...given) => {
    if (fault === undefined) return machines.update(...given);
    refused += 1;
    throw fault;
  };
  return { ...deps, store: { ...deps.store, machines: { ...machines, update } } };
}

const shop = shopForEach({ wrap: faulty });
beforeEach(() => {
  fault = undefined;
  refused = 0;
});

const logged = (message: string) => shop.world.logged.filter((line) => line.message === message);

/** A machine whose virtual machine has disappeared while the disk was full. */
async function lostMachine(config: Partial<MachineConfig> = {}): Promise<string> {
  const id = await shop.run(config);
  fault = FULL;
  shop.lose(id);
  await expect.poll(() => shop.record(id).stateReason).not.toBeNull();
  return id;
}

describe("a virtual machine that disappears while the disk is full", () => {
  test("shows in the machine at once, with what to do", async () => {
    const id = await lostMachine({ restart: { policy: "no" } });
    const { state, stateReason } = shop.record(id);
    expect(state).toBe("running");
    expect(stateReason).toBe(
      "the virtual machine disappeared: the virtual machine ended. This cannot be stored: the platform cannot write its database (database or disk is full). Free some disk space; the platform then continues by itself",
    );
    expect(healthOf(shop.record(id), [])).toEqual({ status: "unhealthy", reason: stateReason });
  });

  test("is told to those who follow the machine, such as the proxies", async () => {
    const told: (string | null)[] = [];
    shop.machines.subscribe("routing", ({ unreachable }) => void told.push(unreachable ?? null));
    const id = await lostMachine({ restart: { policy: "no" } });
    expect(told.at(-1)).toMatch(/^the virtual machine disappeared/);
    fault = undefined;
    await shop.reach(id, "failed");
    expect(told.at(-1)).toBeNull();
  });

  test("is logged once with its reason, and without a stack", async () => {
    await lostMachine({ restart: { policy: "no" } });
    await expect.poll(() => refused).toBeGreaterThanOrEqual(ATTEMPTS);
    expect(logged(CANNOT)).toHaveLength(1);
    const [line] = logged(CANNOT);
    expect(line?.fields).toMatchObject({
      outcome: "lost",
      reason: expect.stringContaining("database or disk is full"),
    });
    expect(line?.fields).not.toHaveProperty("err");
  });

  test("is stored once there is room, with nothing left of the fault", async () => {
    const id = await lostMachine({ restart: { policy: "no" } });
    fault = undefined;
    await shop.reach(id, "failed");
    expect(shop.record(id)).toMatchObject({ stateReason: "the virtual machine ended", unreachable: null });
    expect(shop.world.store.machines.get(id)).toEqual(shop.record(id));
    expect(logged("the outcome is stored")).toHaveLength(1);
  });

  test("is restarted by its policy once there is room", async () => {
    const id = await lostMachine();
    expect(shop.record(id).stateReason).toMatch(/^the virtual machine disappeared and will be restarted: /);
    fault = undefined;
    await expect.poll(() => shop.record(id).lastBoot?.reason, { timeout: 5000 }).toBe("vmm_lost");
    await shop.reach(id, "running");
    expect(shop.record(id)).toMatchObject({ stateReason: null, unreachable: null });
  });

  test("leaves no trace in the record if someone stops the machine first", async () => {
    const id = await lostMachine({ restart: { policy: "no" } });
    expect(() => shop.machines.stop("shop", id)).toThrow(FULL);
    fault = undefined;
    shop.machines.stop("shop", id);
    await expect
      .poll(() => [shop.record(id).state, shop.record(id).stateReason], { timeout: 5000 })
      .toEqual(["stopped", null]);
    expect(shop.record(id).unreachable ?? null).toBeNull();
  });
});

test("a stop that is done but cannot be stored says so", async () => {
  const id = await shop.run();
  shop.machines.stop("shop", id);
  fault = FULL;
  await expect
    .poll(() => shop.record(id).stateReason)
    .toMatch(/^shut down: the app exited with code 0\. This cannot be stored: /);
  expect(shop.record(id).state).toBe("stopping");
  fault = undefined;
  await shop.reach(id, "stopped");
  expect(shop.record(id).stateReason).toBe("the app exited with code 0");
});

describe("the log", () => {
  const lines: Record<string, unknown>[] = [];
  const note = (fields: Record<string, unknown>) => void lines.push(fields);
  const newLog = () => {
    lines.length = 0;
    return new UnstoredLog({ info: note, error: note }, { machine: "1", outcome: "lost" });
  };

  test("says it again at most once a minute", () => {
    const log = newLog();
    for (let waited = 0; waited < 3 * REPEAT_LOG_MS; waited += 5000) log.failed(FULL, 5000);
    expect(lines).toHaveLength(3);
  });

  test("has the stack of anything but a fault of the disk", () => {
    const log = newLog();
    const error = new TypeError("x is not a function");
    log.failed(error, 100);
    expect(lines).toEqual([{ machine: "1", outcome: "lost", err: error }]);
  });

  test("says nothing about what is stored at the first attempt", () => {
    const log = newLog();
    expect(log.stored()).toBe(false);
    expect(lines).toEqual([]);
  });
});
