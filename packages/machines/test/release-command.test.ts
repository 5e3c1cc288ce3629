/** The command of a release: it runs before any machine changes, and nothing of it stays, whatever happens. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineEvent } from "@hibernaut/domain/machine";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import { type CommandEnd, type CommandVerdict, commandConfig, verdictOf } from "../src/release-command/rules.ts";
import type { CommandOutput } from "../src/release-command/run.ts";
import { shopForEach } from "./shop.ts";
import { untilDeath } from "./until-death.ts";

describe("the verdict", () => {
  const ended = (details: object): MachineEvent[] => [
    { at: "", type: "halted", from: "stopping", to: "stopped", details: {} },
    { at: "", type: "app_ended", from: "running", to: "stopping", details: details as Record<string, unknown> },
  ];
  const exit = (code: number, signal = 0, reason = `the app exited with code ${code}`) =>
    ended({ code, signal, oom: false, reason });
  test.each<[string, CommandEnd, MachineEvent[], CommandVerdict]>([
    ["code 0", { state: "stopped" }, exit(0), { ok: true, exitCode: 0, reason: "it exited with code 0" }],
    ["another code", { state: "stopped" }, exit(3), { ok: false, exitCode: 3, reason: "it exited with code 3" }],
    [
      "a signal",
      { state: "stopped" },
      exit(0, 9, "the app was killed: out of memory"),
      { ok: false, exitCode: null, reason: "it was killed: out of memory" },
    ],
    [
      "it was stopped",
      { state: "stopped" },
      [],
      { ok: false, exitCode: null, reason: "its machine was stopped before it exited" },
    ],
    [
      "it was destroyed",
      { state: "destroyed" },
      [],
      { ok: false, exitCode: null, reason: "its machine was destroyed before it exited" },
    ],
    ["it could not start", { state: "failed" }, [], { ok: false, exitCode: null, reason: "no room" }],
    ["it took too long", "timeout", exit(0), { ok: false, exitCode: null, reason: "it did not exit within 1.5 s" }],
    ["it was cancelled", "cancelled", exit(0), { ok: false, exitCode: null, reason: "it was cancelled" }],
  ])("%s", (_what, end, events, verdict) => {
    expect(verdictOf(end, { stateReason: "no room", events, timeoutMs: 1500 })).toEqual(verdict);
  });
});

test("its machine has no volumes, services or restarts, and knows what it is for", () => {
  const config: MachineConfig = {
    ...SMALL,
    image: "app:other",
    env: { A: "1", RELEASE_COMMAND: "no" },
    init: { cmd: ["migrate"] },
    mounts: [{ volume: "data", path: "/data" }],
    checks: { web: { type: "tcp", port: 80 } },
    schedule: "daily",
    schedule_timezone: "UTC",
    restart: { policy: "always" },
    files: [{ guest_path: "/a", raw_value: "" }],
  };
  expect(commandConfig(config, "app:1@sha256:1")).toEqual({
    image: "app:1@sha256:1",
    guest: SMALL.guest,
    env: { A: "1", RELEASE_COMMAND: "1" },
    init: { cmd: ["migrate"] },
    restart: { policy: "no" },
    files: [{ guest_path: "/a", raw_value: "" }],
  });
});

/** All that it printed, and its verdict. */
const read = async (output: CommandOutput) => {
  const lines: string[] = [];
  for await (const block of output)
    for (const line of block)
      if ("text" in line) lines.push(line.text);
      else return { lines, verdict: line };
  throw new Error("the output ended without a verdict");
};

describe("a release command", () => {
  const shop = shopForEach();
  let cancel: AbortController;
  beforeEach(() => {
    cancel = new AbortController();
  });
  afterEach(() => cancel.abort());
  const start = async ({ timeoutMs = 5000 } = {}) => {
    const { version } = await shop.platform.releases.begin("shop", "app:2", "");
    return shop.platform.releaseCommands.start("shop", version, { config: SMALL, timeoutMs, signal: cancel.signal });
  };
  const machine = () => shop.machines.list("shop")[0]?.record;
  const running = async () => {
    const id = machine()?.id ?? "";
    await shop.reach(id, "running");
    return id;
  };
  const nothingLeft = async () => {
    await vi.waitFor(() => expect(shop.machines.list("shop")).toEqual([]));
    expect(shop.host.processes.size).toBe(0);
  };

  test("shows its output, succeeds with exit code 0, and its machine is gone", async () => {
    const output = read(await start());
    const id = await running();
    expect(machine()).toMatchObject({ name: "release-1-command", releaseCommand: 1 });
    expect(shop.host.guest(id)?.env).toMatchObject({ RELEASE_COMMAND: "1" });
    shop.host.guest(id)?.print("migrated 3 tables");
    shop.host.guest(id)?.exit(0);
    const { lines, verdict } = await output;
    expect(verdict).toEqual({ ok: true, exitCode: 0, reason: "it exited with code 0" });
    expect(lines).toContain("migrated 3 tables");
    await nothingLeft();
  });

  test("fails with another exit code, and keeps its last words", async () => {
    const output = read(await start());
    const id = await running();
    shop.host.guest(id)?.print("column exists", "stderr");
    shop.host.guest(id)?.exit(3);
    expect(await output).toMatchObject({
      lines: expect.arrayContaining(["column exists"]),
      verdict: { ok: false, exitCode: 3 },
    });
    await nothingLeft();
  });

  test("that does not end is ended", async () => {
    expect(await read(await start({ timeoutMs: 300 }))).toMatchObject({
      verdict: { ok: false, reason: "it did not exit within 0.3 s" },
    });
    await nothingLeft();
  });

  test("fails when its machine cannot start", async () => {
    shop.host.faults.boot = new Error("no room");
    expect(await read(await start())).toMatchObject({ verdict: { ok: false, exitCode: null, reason: "no room" } });
    await nothingLeft();
  });

  test("is cancelled when nobody waits for it: by its signal, and by a reader that stops", async () => {
    const output = await start();
    await running();
    cancel.abort();
    expect(await read(output)).toMatchObject({ verdict: { ok: false, reason: "it was cancelled" } });
    await nothingLeft();
    cancel = new AbortController();
    const other = await start();
    await other.next();
    await other.return();
    await nothingLeft();
  });

  test("runs once at a time, and only for a release that is being deployed", async () => {
    const { version } = await shop.platform.releases.begin("shop", "app:2", "");
    const request = { config: SMALL, timeoutMs: 5000, signal: cancel.signal };
    const output = await shop.platform.releaseCommands.start("shop", version, request);
    await expect(shop.platform.releaseCommands.start("shop", version, request)).rejects.toMatchObject({
      code: "already_exists",
    });
    cancel.abort();
    await read(output);
    await nothingLeft();
    shop.platform.releases.end("shop", version, "failed", "");
    await expect(
      shop.platform.releaseCommands.start("shop", version, { ...request, signal: new AbortController().signal }),
    ).rejects.toMatchObject({ code: "failed_precondition", message: expect.stringContaining("begin a new release") });
  });
});

describe("the platform is killed while a command runs", () => {
  /** Until the command has ended, or the platform has died. */
  const live = async (world: World, mortality: Mortality) => {
    const platform = await startPlatform(world, { wrap: (deps) => mortality.wrap(deps) });
    const command = async () => {
      platform.apps.create("shop");
      const { version } = await platform.releases.begin("shop", "app:2", "");
      const signal = AbortSignal.timeout(10_000);
      const output = await platform.releaseCommands.start("shop", version, { config: SMALL, timeoutMs: 9000, signal });
      const id = platform.machines.list("shop")[0]?.record.id ?? "";
      void platform.machines
        .wait("shop", id, ["running"], { timeoutMs: 5000 })
        .then(() => world.host.guest(id)?.exit(0))
        .catch(() => {});
      await read(output);
    };
    await untilDeath(mortality, command());
  };

  test("at any step: the next one leaves no machine of it", async () => {
    const rehearsal = new Mortality();
    const first = await newWorld();
    await live(first, rehearsal);
    await first.dispose();
    expect(rehearsal.steps).toEqual(expect.arrayContaining(["store.insert", "hypervisor.boot", "files.remove"]));
    for (const when of ["before", "after"] as const)
      for (const [step, name] of rehearsal.steps.entries()) {
        const world = await newWorld();
        try {
          await live(world, new Mortality(step, when));
          const platform = await startPlatform(world);
          const left = () => platform.machines.all().map(({ record }) => record.state);
          await vi.waitFor(() => expect(left(), `killed ${when} ${name}`).toEqual([]), 5000);
          expect(world.host.processes.size).toBe(0);
          await platform.close();
        } finally {
          await world.dispose();
        }
      }
  }, 60_000);
});
