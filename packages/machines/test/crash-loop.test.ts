/** Apps that crash as soon as they are started: what is reported about them, and how commands take over. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineState } from "@hibernaut/domain/machine";
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

const reach = (id: string, ...targets: WaitTarget[]) => machines.wait("shop", id, targets, { timeoutMs: 5000 });
const record = (id: string) => machines.get("shop", id).record;

/** A machine whose app ends with code 1 at each start. */
async function crashing(config: Partial<MachineConfig> = {}): Promise<string> {
  platform.apps.create("shop");
  const { record: made } = await machines.create("shop", { config: { ...SMALL, ...config }, skipLaunch: true });
  world.host.crashing.add(made.id);
  machines.start("shop", made.id);
  return made.id;
}

/** The states that a machine enters from now on. */
function moves(id: string): MachineState[] {
  const seen: MachineState[] = [];
  machines.subscribe("waiting", (changed) => changed.id === id && seen.push(changed.state));
  return seen;
}

describe("between two attempts", () => {
  test("the machine rests in `restarting`, and shows the attempt, when it is due, and how the app ended", async () => {
    const id = await crashing();
    await reach(id, "restarting");
    const { crash, stateReason } = record(id);
    expect(stateReason).toBe("the app exited with code 1");
    expect(crash).toMatchObject({ reason: stateReason, exit_code: 1, at_start: true, attempt: 1, max_attempts: 10 });
    expect(Date.parse(crash?.retry_at ?? "") - Date.parse(crash?.at ?? "")).toBe(250);
    await expect.poll(() => record(id).crash).toMatchObject({ attempt: 2 });
  });

  test("a wait for `settled` ends", async () => {
    const id = await crashing();
    expect(await reach(id, "settled")).toBe("restarting");
  });

  test("no guest is left, and the next platform continues the wait", async () => {
    const id = await crashing();
    await reach(id, "restarting");
    expect(world.host.of(id)).toEqual([]);
    await platform.close();
    expect(record(id).state).toBe("restarting");
    platform = await startPlatform(world);
    ({ machines } = platform);
    world.host.crashing.clear();
    await reach(id, "running");
  });

  test("after the last attempt the machine is stopped, with the reason; a new start gives it all attempts again", async () => {
    const id = await crashing({ restart: { policy: "on-failure", max_retries: 1 } });
    await reach(id, "stopped");
    expect(record(id).crash).toMatchObject({ attempt: 1, max_attempts: 1, retry_at: null });
    machines.start("shop", id);
    await reach(id, "restarting");
    expect(record(id).crash).toMatchObject({ attempt: 1, retry_at: expect.any(String) });
  });

  test("a start by a request gives an app that ran out of attempts exactly one more", async () => {
    const id = await crashing({ restart: { policy: "on-failure", max_retries: 1 } });
    await reach(id, "stopped");
    const seen = moves(id);
    machines.start("shop", id, { by: "proxy" });
    await reach(id, "stopped");
    expect(seen).toEqual(["starting", "stopping", "stopped"]);
    expect(record(id).crash).toMatchObject({ exit_code: 1, retry_at: null });
  });

  test("an app that was suspended has worked, so its failures are forgotten", async () => {
    const id = await runningMachine(platform);
    world.host.guest(id)?.exit(3);
    await reach(id, "restarting");
    await reach(id, "running");
    machines.suspend("shop", id);
    await reach(id, "suspended");
    expect(record(id)).toMatchObject({ restarts: 0, crash: null });
  });
});

describe("taking over a crash loop, at any point", () => {
  const states = ["starting", "stopping", "restarting"] as const;
  const cases = states.flatMap((state) =>
    (["update", "start", "restart", "stop", "destroy"] as const).map((command) => ({ state, command })),
  );

  test.each(cases)("$command while it is $state", async ({ state, command }) => {
    const id = await crashing();
    await reach(id, "restarting");
    // At the very moment the machine enters the state, as a command may.
    const acted = new Promise<void>((resolve, reject) => {
      const stop = machines.subscribe("waiting", (changed) => {
        if (changed.id !== id || changed.state !== state) return;
        stop();
        world.host.crashing.delete(id);
        Promise.resolve(act(command, id)).then(() => resolve(), reject);
      });
      if (record(id).state === state) act("restart", id);
      if (state === "restarting") world.host.crashing.add(id);
    });
    await acted;
    const end = {
      update: "running",
      start: "running",
      restart: "running",
      stop: "stopped",
      destroy: "destroyed",
    } as const;
    await reach(id, end[command]);
    if (command === "destroy") return;
    expect(record(id)).toMatchObject({ state: end[command], crash: null, restarts: 0 });
    if (command === "update") expect(record(id).config.image).toBe("app:2");
  });

  function act(command: "update" | "start" | "restart" | "stop" | "destroy", id: string): unknown {
    if (command === "update") return machines.update("shop", id, { ...SMALL, image: "app:2" });
    if (command === "destroy") return machines.destroy("shop", id, { force: true });
    return machines[command]("shop", id);
  }

  test("an update of a machine that failed, or ran out of attempts, starts it", async () => {
    const id = await crashing({ restart: { policy: "no" } });
    await reach(id, "stopped");
    world.host.crashing.delete(id);
    await machines.update("shop", id, SMALL);
    await reach(id, "running");
    machines.stop("shop", id);
    await reach(id, "stopped");
    world.host.faults.boot = new Error("no room");
    machines.start("shop", id);
    await reach(id, "failed");
    await machines.update("shop", id, SMALL);
    await reach(id, "running");
  });

  test("an update during a stop waits for the stop, and leaves the machine stopped", async () => {
    const id = await runningMachine(platform);
    const guest = world.host.guest(id);
    machines.stop("shop", id);
    await machines.update("shop", id, { ...SMALL, image: "app:2" });
    await reach(id, "stopped");
    expect(guest?.state.exit).toEqual({ code: 0, signal: 0, oom: false }); // it was asked to end, not killed
    expect(record(id).config.image).toBe("app:2");
  });
});

describe("a guest that is killed while it starts", () => {
  /** Ends the machine's VMM in the middle of each of its next starts. */
  function killer(kind: "boot" | "restore", times: number): { left: number } {
    const rest = { left: times };
    const kill = () => {
      for (const process of world.host.processes.values()) world.host.end(process.ref);
    };
    Object.defineProperty(world.host.hold, kind, {
      get: () => {
        if (rest.left === 0) return undefined;
        rest.left -= 1;
        return Promise.resolve().then(kill);
      },
    });
    return rest;
  }

  test("is started again within the same start", async () => {
    const id = await runningMachine(platform);
    machines.stop("shop", id);
    await reach(id, "stopped");
    const rest = killer("boot", 2);
    const seen = moves(id);
    machines.start("shop", id);
    await reach(id, "running");
    expect(seen).toEqual(["starting", "running"]);
    expect(rest.left).toBe(0);
    expect(record(id)).toMatchObject({ restarts: 0, stateReason: null });
  });

  test("keeps its memory when it was killed before it ran", async () => {
    const id = await runningMachine(platform);
    const before = world.host.guest(id)?.request();
    machines.suspend("shop", id);
    await reach(id, "suspended");
    killer("restore", 2);
    machines.start("shop", id);
    await reach(id, "running");
    expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
    expect(world.host.guest(id)?.request()).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("fails, with the reason and its snapshot kept, when it is killed each time", async () => {
    const id = await runningMachine(platform);
    machines.suspend("shop", id);
    await reach(id, "suspended");
    killer("restore", 3);
    machines.start("shop", id);
    await reach(id, "failed");
    expect(record(id)).toMatchObject({ stateReason: "the fake was killed", snapshot: expect.any(Object) });
    machines.start("shop", id);
    await reach(id, "running");
    expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
  });
});
