/** Commands, keep-awake leases and getting ready, through the states of a machine. Every command of the fake guest is `cat`. */
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newWorld, runningMachine, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import type { GuestEvent } from "../src/guest-events.ts";
import type { Resources } from "../src/open.ts";
import type { Machines } from "../src/resources/machines.ts";

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

const reach = (id: string, state: "running" | "suspended" | "stopped" | "destroyed") =>
  machines.wait("shop", id, [state], { timeoutMs: 5000 });
const record = (id: string) => machines.get("shop", id).record;
const suspended = async (id: string) => {
  machines.suspend("shop", id);
  await reach(id, "suspended");
};
const started = async (id: string) => {
  machines.start("shop", id);
  await reach(id, "running");
};
const echo = (id: string) => platform.commands.run("shop", id, { args: ["cat"], input: true });

describe("a command in a suspended machine", () => {
  test("continues after the resume, with the input from in between", async () => {
    const id = await runningMachine(platform);
    const command = echo(id);
    const output = text(command.stdout);
    for (const word of ["one ", "two ", "three "]) {
      command.stdin.write(word);
      await suspended(id);
      command.stdin.write(`asleep after ${word}`);
      await started(id);
    }
    command.stdin.end("end");
    expect(await command.exit).toMatchObject({ code: 0 });
    expect(await output).toBe("one asleep after one two asleep after two three asleep after three end");
  });

  test("waits for credit while suspended: its input is not buffered without limit", async () => {
    const id = await runningMachine(platform);
    const command = echo(id);
    const output = text(command.stdout);
    await suspended(id);
    expect(command.stdin.write(Buffer.alloc(1 << 20, "x"))).toBe(false);
    const drained = once(command.stdin, "drain");
    await started(id);
    await drained;
    command.stdin.end();
    expect((await output).length).toBe(1 << 20);
  });

  test.each([
    ["stopped", (id: string) => machines.stop("shop", id), "stopped"],
    ["destroyed", (id: string) => machines.destroy("shop", id), "destroyed"],
    ["updated", (id: string) => machines.update("shop", id, { ...SMALL, image: "app:2" }), "suspended"],
  ] as const)("ends when it is %s there", async (_what, end, state) => {
    const id = await runningMachine(platform);
    const command = echo(id);
    const output = text(command.stdout);
    await suspended(id);
    await end(id);
    await expect(command.exit).rejects.toThrow("the machine ended");
    expect(await output).toBe("");
    await reach(id, state);
  });

  test("ends when its snapshot cannot be resumed and the start is cold", async () => {
    const id = await runningMachine(platform);
    const command = echo(id);
    await suspended(id);
    world.host.faults.restore = new Error("bad state");
    await started(id);
    expect(record(id).lastBoot?.kind).toBe("cold");
    await expect(command.exit).rejects.toThrow(/from scratch|ended/);
    expect(await platform.commands.run("shop", id, { args: ["cat"] }).exit).toMatchObject({ code: 0 });
  });

  test("keeps running when the suspend fails", async () => {
    const id = await runningMachine(platform);
    const command = echo(id);
    const output = text(command.stdout);
    world.host.faults.capture = new Error("no room");
    machines.suspend("shop", id);
    command.stdin.end("said meanwhile");
    expect(await command.exit).toMatchObject({ code: 0 });
    expect(await output).toBe("said meanwhile");
    await reach(id, "running");
  });
});

test("a command ends when its machine disappears, and when the platform shuts down", async () => {
  const id = await runningMachine(platform, { restart: { policy: "no" } });
  const lost = echo(id);
  const process = world.host.of(id)[0];
  if (process !== undefined) world.host.end(process.ref);
  await expect(lost.exit).rejects.toThrow("the machine ended");
  await machines.wait("shop", id, ["failed"], { timeoutMs: 5000 });
  await started(id);
  const last = echo(id);
  await platform.close();
  await expect(last.exit).rejects.toThrow("the platform is shutting down");
  platform = await startPlatform(world);
  ({ machines } = platform);
});

test("only a running machine runs commands, and a refusal says what to do next", async () => {
  platform.apps.create("shop");
  const { record: created } = await machines.create("shop", { config: SMALL, skipLaunch: true });
  const { id } = created;
  const refused = (state: string) => {
    const details = { machine_id: id, state };
    expect(() => echo(id)).toThrowError(expect.objectContaining({ code: "failed_precondition", details }));
    expect(() => echo(id)).toThrowError(/Start it, then run the command/);
  };
  refused("created");
  await started(id);
  expect(() => platform.commands.run("shop", id, { args: ["x".repeat(70_000)] })).toThrowError(
    expect.objectContaining({ code: "invalid_argument" }),
  );
  machines.suspend("shop", id);
  refused("suspending");
  await reach(id, "suspended");
  refused("suspended");
  machines.stop("shop", id);
  await reach(id, "stopped");
  refused("stopped");
});

describe("a keep-awake lease", () => {
  test("is stored and announced, survives a restart of the platform, and ends when it is given back", async () => {
    const id = await runningMachine(platform);
    const told: unknown[] = [];
    machines.subscribe("waiting", (changed) => told.push(changed.keepAwake));
    const lease = platform.guestApi.keepAwake(id, 120, "encoding");
    expect(lease?.reason).toBe("encoding");
    expect(Math.abs(Date.parse(lease?.until ?? "") - Date.now() - 120_000)).toBeLessThan(5000);
    expect(record(id).keepAwake).toEqual(lease);
    await platform.close();
    platform = await startPlatform(world);
    ({ machines } = platform);
    expect(record(id).keepAwake).toEqual(lease);
    expect(platform.guestApi.keepAwake(id, 0, "")).toBeNull();
    expect(record(id).keepAwake).toBeNull();
    expect(told).toEqual([lease]);
  });

  test("has a maximum, and ends with a stop", async () => {
    const id = await runningMachine(platform);
    expect(() => platform.guestApi.keepAwake(id, 3601, "")).toThrowError(
      expect.objectContaining({ code: "invalid_argument", details: { field: "ttl", maximum: 3600 } }),
    );
    platform.guestApi.keepAwake(id, 3600, "long work");
    machines.stop("shop", id);
    await reach(id, "stopped");
    expect(record(id).keepAwake).toBeNull();
  });
});

describe("suspend_config", () => {
  const config = { suspend_config: { timeout: 1 } };
  const captured = (id: string) => machines.events("shop", id, 10).find(({ type }) => type === "captured");

  test("an app that answers is waited for, and learns of the resume", async () => {
    const id = await runningMachine(platform, config);
    const heard: GuestEvent[] = [];
    platform.guestApi.subscribe(id, (event) => {
      heard.push(event);
      if (event.kind === "suspend") queueMicrotask(() => platform.guestApi.ready(id, event.id));
    });
    await suspended(id);
    await started(id);
    expect(heard.map(({ kind }) => kind)).toEqual(["cold", "suspend", "resume"]);
    expect(captured(id)?.details).not.toHaveProperty("unready");
  });

  test("an app that does not answer is suspended anyway, and its history says so", async () => {
    const id = await runningMachine(platform, config);
    platform.guestApi.subscribe(id, () => {});
    await suspended(id);
    expect(captured(id)?.details).toMatchObject({ unready: "the app was not ready after 1000 ms" });
  });

  test("a failed suspend is announced as a start", async () => {
    const id = await runningMachine(platform, config);
    const heard: GuestEvent[] = [];
    platform.guestApi.subscribe(id, (event) => {
      heard.push(event);
      if (event.kind === "suspend") queueMicrotask(() => platform.guestApi.ready(id, event.id));
    });
    world.host.faults.capture = new Error("no room");
    machines.suspend("shop", id);
    await reach(id, "running");
    await expect.poll(() => heard.at(-1)).toEqual({ kind: "resume", slept_ms: 0 });
  });
});

describe("how an app ended is in the machine's history", () => {
  test.each([
    ["a code", [3, {}], { code: 3, signal: 0, oom: false, reason: "the app exited with code 3" }],
    ["a signal", [0, { signal: 11 }], { code: 0, signal: 11, oom: false, reason: "the app was ended by signal 11" }],
    [
      "a lack of memory",
      [0, { signal: 9, oom: true }],
      { code: 0, signal: 9, oom: true, reason: "the app was killed: out of memory" },
    ],
  ] as const)("%s", async (_what, [code, how], details) => {
    const id = await runningMachine(platform, { restart: { policy: "no" } });
    world.host.guest(id)?.exit(code, how);
    await reach(id, "stopped");
    expect(machines.events("shop", id, 5).find(({ type }) => type === "app_ended")?.details).toEqual(details);
    expect(record(id).stateReason).toBe(details.reason);
  });

  test("an exit that only the guest knows about, because the platform was down during the start", async () => {
    const id = await runningMachine(platform, { restart: { policy: "no" } });
    await platform.close();
    world.store.machines.update({ ...record(id), state: "starting" });
    world.host.guest(id)?.exit(0, { signal: 11 });
    platform = await startPlatform(world);
    ({ machines } = platform);
    await reach(id, "stopped");
    expect(record(id).stateReason).toBe("the app was ended by signal 11");
    expect(machines.events("shop", id, 5).find(({ type }) => type === "app_ended")?.details).toMatchObject({
      signal: 11,
    });
  });

  test("after max_retries the machine rests; a manual start resets the count", async () => {
    const id = await runningMachine(platform, { restart: { policy: "on-failure", max_retries: 1 } });
    const fail = async () => {
      await expect.poll(() => world.host.guest(id)?.state.phase).toBe(1);
      world.host.guest(id)?.exit(0, { signal: 11 });
    };
    for (let round = 0; round < 2; round += 1) {
      await fail();
      await expect.poll(() => record(id).restarts).toBe(1);
      await reach(id, "running");
      await fail();
      await reach(id, "stopped");
      await started(id);
      expect(record(id).restarts).toBe(0);
    }
    const ends = machines.events("shop", id, 100).filter(({ type }) => type.startsWith("app_"));
    expect(ends.map(({ type }) => type)).toEqual(["app_ended", "app_restarts", "app_ended", "app_restarts"]);
    for (const { details } of ends) expect(details).toMatchObject({ signal: 11 });
  });

  test("an app that ends before it is ready counts from its own start, not from the previous one", async () => {
    const id = await runningMachine(platform, { restart: { policy: "on-failure", max_retries: 2 } });
    await platform.close();
    // It ran for a long time, so this failure counts as a first one. Those that follow do not.
    const { lastBoot } = record(id);
    if (lastBoot === null) throw new Error("it never ran");
    const longAgo = new Date(Date.now() - 600_000).toISOString();
    world.store.machines.update({ ...record(id), lastBoot: { ...lastBoot, at: longAgo }, restarts: 2 });
    platform = await startPlatform(world);
    ({ machines } = platform);
    world.host.crashing.add(id);
    world.host.guest(id)?.exit(1);
    await reach(id, "stopped");
    const ends = machines.events("shop", id, 100).filter(({ type }) => type.startsWith("app_"));
    expect(ends.map(({ type }) => type)).toEqual(["app_ended", "app_restarts", "app_restarts"]);
    for (const { details } of ends) expect(details).toMatchObject({ code: 1, signal: 0, oom: false });
  });

  test("`always` restarts an app that ended well, but not one that was stopped", async () => {
    const id = await runningMachine(platform, { restart: { policy: "always" } });
    world.host.guest(id)?.exit(0);
    await expect.poll(() => record(id).restarts).toBe(1);
    await reach(id, "running");
    machines.stop("shop", id);
    await reach(id, "stopped");
    await machines.wait("shop", id, ["settled"], { timeoutMs: 5000 });
    expect(record(id)).toMatchObject({ state: "stopped", goal: null });
    expect(world.host.processes.size).toBe(0);
  });
});
