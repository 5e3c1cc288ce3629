/** Apps that crash as soon as they are started: what is reported about them, and how commands take over. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineState } from "@hibernaut/domain/machine";
import { describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();

/** A machine whose app ends with code 1 at each start. */
async function crashing(config: Partial<MachineConfig> = {}): Promise<string> {
  const id = await shop.create(config);
  shop.host.crashing.add(id);
  shop.machines.start("shop", id);
  return id;
}

/** The states that a machine enters from now on. */
function moves(id: string): MachineState[] {
  const seen: MachineState[] = [];
  shop.machines.subscribe("waiting", (changed) => changed.id === id && seen.push(changed.state));
  return seen;
}

describe("between two attempts", () => {
  test("the machine rests in `restarting`, and shows the attempt, when it is due, and how the app ended", async () => {
    const id = await crashing();
    expect(await shop.reach(id, "settled")).toBe("restarting");
    const { crash, stateReason } = shop.record(id);
    expect(stateReason).toBe("the app exited with code 1");
    expect(crash).toMatchObject({ reason: stateReason, exit_code: 1, at_start: true, attempt: 1, max_attempts: 10 });
    expect(Date.parse(crash?.retry_at ?? "") - Date.parse(crash?.at ?? "")).toBe(250);
    await expect.poll(() => shop.record(id).crash).toMatchObject({ attempt: 2 });
  });

  test("no guest is left, and the next platform continues the wait", async () => {
    const id = await crashing();
    await shop.reach(id, "restarting");
    expect(shop.host.of(id)).toEqual([]);
    await shop.platform.close();
    expect(shop.record(id).state).toBe("restarting");
    await shop.open();
    shop.host.crashing.clear();
    await shop.reach(id, "running");
  });

  test("after the last attempt the machine is stopped, with the reason; a new start gives it all attempts again", async () => {
    const id = await crashing({ restart: { policy: "on-failure", max_retries: 1 } });
    await shop.reach(id, "stopped");
    expect(shop.record(id).crash).toMatchObject({ attempt: 1, max_attempts: 1, retry_at: null });
    shop.machines.start("shop", id);
    await shop.reach(id, "restarting");
    expect(shop.record(id).crash).toMatchObject({ attempt: 1, retry_at: expect.any(String) });
  });

  test("a start by a request gives an app that ran out of attempts exactly one more", async () => {
    const id = await crashing({ restart: { policy: "on-failure", max_retries: 1 } });
    await shop.reach(id, "stopped");
    const seen = moves(id);
    shop.machines.start("shop", id, { by: "proxy" });
    await shop.reach(id, "stopped");
    expect(seen).toEqual(["starting", "stopping", "stopped"]);
    expect(shop.record(id).crash).toMatchObject({ exit_code: 1, retry_at: null });
  });

  test("an app that was suspended has worked, so its failures are forgotten", async () => {
    const id = await shop.run();
    shop.host.guest(id)?.exit(3);
    await shop.reach(id, "restarting");
    await shop.reach(id, "running");
    await shop.suspend(id);
    expect(shop.record(id)).toMatchObject({ restarts: 0, crash: null });
  });
});

describe("taking over a crash loop, at any point", () => {
  const states = ["starting", "stopping", "restarting"] as const;
  const cases = states.flatMap((state) =>
    (["update", "start", "restart", "stop", "destroy"] as const).map((command) => ({ state, command })),
  );

  test.each(cases)("$command while it is $state", async ({ state, command }) => {
    const id = await crashing();
    await shop.reach(id, "restarting");
    // At the very moment the machine enters the state, as a command may.
    const acted = new Promise<void>((resolve, reject) => {
      const stop = shop.machines.subscribe("waiting", (changed) => {
        if (changed.id !== id || changed.state !== state) return;
        stop();
        shop.host.crashing.delete(id);
        Promise.resolve(act(command, id)).then(() => resolve(), reject);
      });
      if (shop.record(id).state === state) act("restart", id);
      if (state === "restarting") shop.host.crashing.add(id);
    });
    await acted;
    const end = {
      update: "running",
      start: "running",
      restart: "running",
      stop: "stopped",
      destroy: "destroyed",
    } as const;
    await shop.reach(id, end[command]);
    if (command === "destroy") return;
    expect(shop.record(id)).toMatchObject({ state: end[command], crash: null, restarts: 0 });
    if (command === "update") expect(shop.record(id).config.image).toBe("app:2");
  });

  function act(command: "update" | "start" | "restart" | "stop" | "destroy", id: string): unknown {
    if (command === "update") return shop.machines.update("shop", id, { ...SMALL, image: "app:2" });
    if (command === "destroy") return shop.machines.destroy("shop", id, { force: true });
    return shop.machines[command]("shop", id);
  }

  test("an update of a machine that failed, or ran out of attempts, starts it", async () => {
    const id = await crashing({ restart: { policy: "no" } });
    await shop.reach(id, "stopped");
    shop.host.crashing.delete(id);
    await shop.update(id);
    await shop.reach(id, "running");
    await shop.stop(id);
    shop.host.faults.boot = new Error("no room");
    shop.machines.start("shop", id);
    await shop.reach(id, "failed");
    await shop.update(id);
    await shop.reach(id, "running");
  });

  test("an update during a stop waits for the stop, and leaves the machine stopped", async () => {
    const id = await shop.run();
    const guest = shop.host.guest(id);
    shop.machines.stop("shop", id);
    await shop.update(id, { image: "app:2" });
    await shop.reach(id, "stopped");
    expect(guest?.state.exit).toEqual({ code: 0, signal: 0, oom: false }); // it was asked to end, not killed
    expect(shop.record(id).config.image).toBe("app:2");
  });
});

describe("a guest that is killed while it starts", () => {
  /** Ends the machine's VMM in the middle of each of its next starts. */
  function killer(kind: "boot" | "restore", times: number): { left: number } {
    const rest = { left: times };
    const kill = () => {
      for (const { ref } of shop.host.processes.values()) shop.host.end(ref);
    };
    Object.defineProperty(shop.host.hold, kind, {
      get: () => {
        if (rest.left === 0) return undefined;
        rest.left -= 1;
        return Promise.resolve().then(kill);
      },
    });
    return rest;
  }

  test("is started again within the same start", async () => {
    const id = await shop.run();
    await shop.stop(id);
    const rest = killer("boot", 2);
    const seen = moves(id);
    await shop.start(id);
    expect(seen).toEqual(["starting", "running"]);
    expect(rest.left).toBe(0);
    expect(shop.record(id)).toMatchObject({ restarts: 0, stateReason: null });
  });

  test("keeps its memory when it was killed before it ran", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    killer("restore", 2);
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("fails, with the reason and its snapshot kept, when it is killed each time", async () => {
    const id = await shop.sleeper();
    killer("restore", 3);
    shop.machines.start("shop", id);
    await shop.reach(id, "failed");
    expect(shop.record(id)).toMatchObject({ stateReason: "the fake was killed", snapshot: expect.any(Object) });
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
  });
});
