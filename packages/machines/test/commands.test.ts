/** Commands, keep-awake leases and getting ready, through the states of a machine. Every command of the fake guest is `cat`. */
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import type { GuestEvent } from "../src/guest-events.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
const echo = (id: string) => shop.platform.commands.run("shop", id, { args: ["cat"], input: true });

describe("a command in a suspended machine", () => {
  test("continues after the resume, with the input from in between", async () => {
    const id = await shop.run();
    const command = echo(id);
    const output = text(command.stdout);
    for (const word of ["one ", "two ", "three "]) {
      command.stdin.write(word);
      await shop.suspend(id);
      command.stdin.write(`asleep after ${word}`);
      await shop.start(id);
    }
    command.stdin.end("end");
    expect(await command.exit).toMatchObject({ code: 0 });
    expect(await output).toBe("one asleep after one two asleep after two three asleep after three end");
  });

  test("waits for credit while suspended: its input is not buffered without limit", async () => {
    const id = await shop.run();
    const command = echo(id);
    const output = text(command.stdout);
    await shop.suspend(id);
    expect(command.stdin.write(Buffer.alloc(1 << 20, "x"))).toBe(false);
    const drained = once(command.stdin, "drain");
    await shop.start(id);
    await drained;
    command.stdin.end();
    expect((await output).length).toBe(1 << 20);
  });

  test.each([
    ["stopped", (id: string) => shop.machines.stop("shop", id), "stopped"],
    ["destroyed", (id: string) => shop.machines.destroy("shop", id), "destroyed"],
    ["updated", (id: string) => shop.machines.update("shop", id, { ...SMALL, image: "app:2" }), "suspended"],
  ] as const)("ends when it is %s there", async (_what, end, state) => {
    const id = await shop.run();
    const command = echo(id);
    const output = text(command.stdout);
    await shop.suspend(id);
    await end(id);
    await expect(command.exit).rejects.toThrow("the machine ended");
    expect(await output).toBe("");
    await shop.reach(id, state);
  });

  test("ends when its snapshot cannot be resumed and the start is cold", async () => {
    const id = await shop.run();
    const command = echo(id);
    await shop.suspend(id);
    shop.host.faults.restore = new Error("bad state");
    await shop.start(id);
    expect(shop.record(id).lastBoot?.kind).toBe("cold");
    await expect(command.exit).rejects.toThrow(/from scratch|ended/);
    expect(await shop.platform.commands.run("shop", id, { args: ["cat"] }).exit).toMatchObject({ code: 0 });
  });

  test("keeps running when the suspend fails", async () => {
    const id = await shop.run();
    const command = echo(id);
    const output = text(command.stdout);
    shop.host.faults.capture = new Error("no room");
    shop.machines.suspend("shop", id);
    command.stdin.end("said meanwhile");
    expect(await command.exit).toMatchObject({ code: 0 });
    expect(await output).toBe("said meanwhile");
    await shop.reach(id, "running");
  });
});

test("a command ends when its machine disappears, and when the platform shuts down", async () => {
  const id = await shop.run({ restart: { policy: "no" } });
  const lost = echo(id);
  shop.lose(id);
  await expect(lost.exit).rejects.toThrow("the machine ended");
  await shop.reach(id, "failed");
  await shop.start(id);
  const last = echo(id);
  await shop.platform.close();
  await expect(last.exit).rejects.toThrow("the platform is shutting down");
  await shop.open();
});

test("only a running machine runs commands, and a refusal says what to do next", async () => {
  const id = await shop.create();
  const refused = (state: string) => {
    const details = { machine_id: id, state };
    expect(() => echo(id)).toThrowError(expect.objectContaining({ code: "failed_precondition", details }));
    expect(() => echo(id)).toThrowError(/Start it, then run the command/);
  };
  refused("created");
  await shop.start(id);
  expect(() => shop.platform.commands.run("shop", id, { args: ["x".repeat(70_000)] })).toThrowError(
    expect.objectContaining({ code: "invalid_argument" }),
  );
  shop.machines.suspend("shop", id);
  refused("suspending");
  await shop.reach(id, "suspended");
  refused("suspended");
  await shop.stop(id);
  refused("stopped");
});

describe("a keep-awake lease", () => {
  test("is stored and announced, survives a restart of the platform, and ends when it is given back", async () => {
    const id = await shop.run();
    const told: unknown[] = [];
    shop.machines.subscribe("waiting", (changed) => told.push(changed.keepAwake));
    const lease = shop.platform.guestApi.keepAwake(id, 120, "encoding");
    expect(lease?.reason).toBe("encoding");
    expect(Math.abs(Date.parse(lease?.until ?? "") - Date.now() - 120_000)).toBeLessThan(5000);
    expect(shop.record(id).keepAwake).toEqual(lease);
    await shop.restart();
    expect(shop.record(id).keepAwake).toEqual(lease);
    expect(shop.platform.guestApi.keepAwake(id, 0, "")).toBeNull();
    expect(shop.record(id).keepAwake).toBeNull();
    expect(told).toEqual([lease]);
  });

  test("has a maximum, and ends with a stop", async () => {
    const id = await shop.run();
    expect(() => shop.platform.guestApi.keepAwake(id, 3601, "")).toThrowError(
      expect.objectContaining({ code: "invalid_argument", details: { field: "ttl", maximum: 3600 } }),
    );
    shop.platform.guestApi.keepAwake(id, 3600, "long work");
    await shop.stop(id);
    expect(shop.record(id).keepAwake).toBeNull();
  });
});

describe("suspend_config", () => {
  const config = { suspend_config: { timeout: 1 } };
  const captured = (id: string) => shop.events(id, "captured")[0];
  /** What an app hears that is ready at once. */
  function listen(id: string): GuestEvent[] {
    const heard: GuestEvent[] = [];
    shop.platform.guestApi.subscribe(id, (event) => {
      heard.push(event);
      if (event.kind === "suspend") queueMicrotask(() => shop.platform.guestApi.ready(id, event.id));
    });
    return heard;
  }

  test("an app that answers is waited for, and learns of the resume", async () => {
    const id = await shop.run(config);
    const heard = listen(id);
    await shop.suspend(id);
    await shop.start(id);
    expect(heard.map(({ kind }) => kind)).toEqual(["cold", "suspend", "resume"]);
    expect(captured(id)?.details).not.toHaveProperty("unready");
  });

  test("an app that does not answer is suspended anyway, and its history says so", async () => {
    const id = await shop.run(config);
    shop.platform.guestApi.subscribe(id, () => {});
    await shop.suspend(id);
    expect(captured(id)?.details).toMatchObject({ unready: "the app was not ready after 1000 ms" });
  });

  test("a failed suspend is announced as a start", async () => {
    const id = await shop.run(config);
    const heard = listen(id);
    shop.host.faults.capture = new Error("no room");
    shop.machines.suspend("shop", id);
    await shop.reach(id, "running");
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
    const id = await shop.run({ restart: { policy: "no" } });
    shop.host.guest(id)?.exit(code, how);
    await shop.reach(id, "stopped");
    expect(shop.events(id, "app_ended")[0]?.details).toEqual(details);
    expect(shop.record(id).stateReason).toBe(details.reason);
  });

  test("an exit that only the guest knows about, because the platform was down during the start", async () => {
    const id = await shop.run({ restart: { policy: "no" } });
    await shop.platform.close();
    shop.world.store.machines.update({ ...shop.record(id), state: "starting" });
    shop.host.guest(id)?.exit(0, { signal: 11 });
    await shop.open();
    await shop.reach(id, "stopped");
    expect(shop.record(id).stateReason).toBe("the app was ended by signal 11");
    expect(shop.events(id, "app_ended")[0]?.details).toMatchObject({ signal: 11 });
  });

  test("an app that ends before it is ready counts from its own start, not from the previous one", async () => {
    const id = await shop.run({ restart: { policy: "on-failure", max_retries: 2 } });
    await shop.platform.close();
    // It ran for a long time, so this failure counts as a first one. Those that follow do not.
    const { lastBoot } = shop.record(id);
    if (lastBoot === null) throw new Error("it never ran");
    const longAgo = new Date(Date.now() - 600_000).toISOString();
    shop.world.store.machines.update({ ...shop.record(id), lastBoot: { ...lastBoot, at: longAgo }, restarts: 2 });
    await shop.open();
    shop.host.crashing.add(id);
    shop.host.guest(id)?.exit(1);
    await shop.reach(id, "stopped");
    const ends = shop.events(id).filter(({ type }) => type.startsWith("app_"));
    expect(ends.map(({ type }) => type)).toEqual(["app_ended", "app_restarts", "app_restarts"]);
    for (const { details } of ends) expect(details).toMatchObject({ code: 1, signal: 0, oom: false });
  });

  test("`always` restarts an app that ended well, but not one that was stopped", async () => {
    const id = await shop.run({ restart: { policy: "always" } });
    shop.host.guest(id)?.exit(0);
    await expect.poll(() => shop.record(id).restarts).toBe(1);
    await shop.reach(id, "running");
    await shop.stop(id);
    await shop.reach(id, "settled");
    expect(shop.record(id)).toMatchObject({ state: "stopped", goal: null });
    expect(shop.host.processes.size).toBe(0);
  });
});
