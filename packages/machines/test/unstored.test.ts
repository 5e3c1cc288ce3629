/** A disk that is full when something happens to a machine: what is shown meanwhile, what is logged, and what follows. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import { healthOf } from "@hibernaut/domain/health";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import type { MachineDependencies } from "../src/dependencies.ts";
import { REPEAT_LOG_MS, UnstoredLog } from "../src/unstored.ts";

const FULL = new HibernautError(
  "unavailable",
  "The platform cannot write its database (database or disk is full). Free some disk space and try again.",
  { cause: "SQLITE_FULL", reason: "database or disk is full" },
);
/** Enough attempts to see that the log does not repeat itself. They take 0.7 s. */
const ATTEMPTS = 4;
const CANNOT = "an outcome cannot be stored; trying again until it can";

let world: World;
let platform: FakePlatform;
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

beforeEach(async () => {
  fault = undefined;
  refused = 0;
  world = await newWorld();
  platform = await startPlatform(world, { wrap: faulty });
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const record = (id: string) => platform.machines.get("shop", id).record;
const logged = (message: string) => world.logged.filter((line) => line.message === message);
const reach = (id: string, state: "running" | "failed" | "stopped") =>
  platform.machines.wait("shop", id, [state], { timeoutMs: 5000 });

/** A machine whose virtual machine has disappeared while the disk was full. */
async function lostMachine(config: Partial<MachineConfig> = {}): Promise<string> {
  const id = await runningMachine(platform, config);
  fault = FULL;
  const [process] = world.host.of(id);
  if (process !== undefined) world.host.end(process.ref);
  await expect.poll(() => record(id).stateReason).not.toBeNull();
  return id;
}

describe("a virtual machine that disappears while the disk is full", () => {
  test("shows in the machine at once, with what to do", async () => {
    const id = await lostMachine({ restart: { policy: "no" } });
    const { state, stateReason } = record(id);
    expect(state).toBe("running");
    expect(stateReason).toBe(
      "the virtual machine disappeared: the virtual machine ended. This cannot be stored: the platform cannot write its database (database or disk is full). Free some disk space; the platform then continues by itself",
    );
    expect(healthOf(record(id), [])).toEqual({ status: "unhealthy", reason: stateReason });
  });

  test("is told to those who follow the machine, such as the proxies", async () => {
    const told: (string | null)[] = [];
    platform.machines.subscribe("routing", ({ unreachable }) => void told.push(unreachable ?? null));
    const id = await lostMachine({ restart: { policy: "no" } });
    expect(told.at(-1)).toMatch(/^the virtual machine disappeared/);
    fault = undefined;
    await reach(id, "failed");
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
    await reach(id, "failed");
    expect(record(id)).toMatchObject({ stateReason: "the virtual machine ended", unreachable: null });
    expect(world.store.machines.get(id)).toEqual(record(id));
    expect(logged("the outcome is stored")).toHaveLength(1);
  });

  test("is restarted by its policy once there is room", async () => {
    const id = await lostMachine();
    expect(record(id).stateReason).toMatch(/^the virtual machine disappeared and will be restarted: /);
    fault = undefined;
    await expect.poll(() => record(id).lastBoot?.reason, { timeout: 5000 }).toBe("vmm_lost");
    await reach(id, "running");
    expect(record(id)).toMatchObject({ stateReason: null, unreachable: null });
  });

  test("leaves no trace in the record if someone stops the machine first", async () => {
    const id = await lostMachine({ restart: { policy: "no" } });
    expect(() => platform.machines.stop("shop", id)).toThrow(FULL);
    fault = undefined;
    platform.machines.stop("shop", id);
    await expect.poll(() => [record(id).state, record(id).stateReason], { timeout: 5000 }).toEqual(["stopped", null]);
    expect(record(id).unreachable ?? null).toBeNull();
  });
});

test("a stop that is done but cannot be stored says so", async () => {
  const id = await runningMachine(platform);
  platform.machines.stop("shop", id);
  fault = FULL;
  await expect
    .poll(() => record(id).stateReason)
    .toMatch(/^shut down: the app exited with code 0\. This cannot be stored: /);
  expect(record(id).state).toBe("stopping");
  fault = undefined;
  await reach(id, "stopped");
  expect(record(id).stateReason).toBe("the app exited with code 0");
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
