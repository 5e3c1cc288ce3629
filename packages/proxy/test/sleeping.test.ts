/** Sleeping: machines that no proxy needs. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  IDLE_S,
  acquire,
  acquireAt,
  anotherProxy,
  later,
  machine,
  reach,
  replaceCoordinator,
  settled,
  state,
  useProxyWorld,
  w,
} from "./proxy-world.ts";

useProxyWorld();

describe("sleeping", () => {
  test("a machine sleeps when nothing was open on it for its idle timeout, and not before", async () => {
    const id = await machine();
    const lease = await acquire();
    await later(60);
    expect(state(id)).toBe("running");
    lease.release({});
    await later(IDLE_S - 1);
    expect(state(id)).toBe("running");
    await later(1);
    await reach(id, "suspended");
    const event = w.machines.events("shop", id, 5).find(({ type }) => type === "suspend");
    expect(event?.details).toMatchObject({ by: "proxy", idle_ms: IDLE_S * 1000 });
    expect(w.left).toContain(id);
  });

  test("with idle = quiet, a silent tunnel counts for nothing, until something passes", async () => {
    await replaceCoordinator({ connectionsSurvive: true });
    const { broker } = await anotherProxy();
    const id = await machine({ idle: "quiet" });
    const lease = await acquireAt(broker);
    lease.upgraded?.();
    await later(60);
    expect(state(id), "it is not quiet yet").toBe("running");
    lease.quiet?.(true);
    await later(IDLE_S - 1);
    lease.quiet?.(false);
    await later(60);
    expect(state(id)).toBe("running");
    lease.quiet?.(true);
    lease.quiet?.(true);
    await later(IDLE_S);
    await reach(id, "suspended");
    await settled();
    lease.quiet?.(false);
    lease.wanted?.();
    await reach(id, "running");
    await later(60);
    expect(state(id)).toBe("running");
    lease.release({});
    await later(IDLE_S);
    await reach(id, "suspended");
  });

  test("a silent tunnel keeps its machine awake where it would not survive the sleep, or unless its service says so", async () => {
    const id = await machine({ idle: "quiet" });
    const lease = await acquire();
    lease.upgraded?.();
    lease.quiet?.(true);
    await later(60);
    expect(state(id)).toBe("running");
    lease.release({});
  });

  test("with autostop = stop a machine is stopped, with off it keeps running", async () => {
    const stops = await machine({ autostop: "stop" });
    await later(IDLE_S);
    await reach(stops, "stopped");
    w.machines.destroy("shop", stops);
    const stays = await machine({ autostop: "off" });
    await later(3600);
    expect(state(stays)).toBe("running");
  });

  test("a machine that cannot be suspended is stopped instead, keeps its files, and says why", async () => {
    const id = await machine({}, { guest: { memory_mb: 4096 } });
    const layer = join(w.world.folder, "machines", id, "layer.ext4");
    await writeFile(layer, "what the app wrote");
    await later(IDLE_S);
    await reach(id, "stopped");
    const event = w.machines.events("shop", id, 5).find(({ type }) => type === "stop");
    expect(event?.details).toMatchObject({ keep_layer: true, reason: expect.stringMatching(/: memory is 4096 MB/) });
    expect(w.machines.get("shop", id).record.stateReason).toMatch(
      /^stopped while idle, because it cannot be suspended: memory is 4096 MB.*; its files are kept$/,
    );
    const lease = await acquire();
    expect(await readFile(layer, "utf8")).toBe("what the app wrote");
    lease.release({});
    w.machines.stop("shop", id);
    await reach(id, "stopped");
    w.machines.start("shop", id);
    await reach(id, "running");
    expect(await readFile(layer, "utf8"), "a stop that someone asked for is a new beginning").toBe("");
  });

  test("where its owner prefers that, a machine that cannot be suspended keeps running, and says so once", async () => {
    const id = await machine({ autostop_fallback: "off" }, { guest: { memory_mb: 4096 } });
    const remarks = () => w.machines.events("shop", id, 100).filter(({ type }) => type === "not_suspended");
    for (let nights = 0; nights < 3; nights += 1) await later(IDLE_S);
    expect(state(id)).toBe("running");
    expect(remarks()).toMatchObject([
      { from: "running", to: "running", details: { by: "proxy", reason: expect.stringMatching(/memory is 4096 MB/) } },
    ]);
    const lease = await acquire();
    expect(lease.wake.kind, "it has stayed in the rotation").toBe("running");
    lease.release({});
  });

  test("all superfluous machines sleep in one pass, down to the minimum", async () => {
    const ids = [];
    for (let i = 0; i < 4; i += 1) ids.push(await machine({ min_machines_running: 1 }));
    await later(IDLE_S);
    await settled();
    expect(ids.filter((id) => state(id) === "running")).toHaveLength(1);
    await later(3600);
    expect(ids.filter((id) => state(id) === "running")).toHaveLength(1);
  });

  test("a steady light load, spread by chance, leaves one machine awake; a burst brings the others back at once", async () => {
    const limits = { concurrency: { soft_limit: 3 } };
    const [first, second, third] = [await machine(limits), await machine(limits), await machine(limits)];
    // Two requests at a time keep one machine below its soft limit, and used to be spread over two.
    const open = [await acquire()];
    const seen = new Set<string>();
    for (let passed = 0; passed < 2 * IDLE_S; passed += 1) {
      open.push(await acquire());
      seen.add(open.at(-1)?.machineId ?? "");
      await later(1);
      open.shift()?.release({});
      await settled();
    }
    await reach(second, "suspended");
    await reach(third, "suspended");
    expect(seen).toContain(second);
    expect(open.map(({ machineId }) => machineId)).toEqual([first]);

    for (let full = open.length; full < 4; full += 1) open.push(await acquire());
    await reach(second, "running");
    await settled();
    expect((await acquire()).machineId).toBe(second);
  });

  test("a machine in excess finishes what is open on it, and takes new requests only when the others are full", async () => {
    const limits = { concurrency: { soft_limit: 2 } };
    const [first, second] = [await machine(limits), await machine(limits)];
    const [one, two] = [await acquire(), await acquire()];
    expect([one.machineId, two.machineId]).toEqual([first, second]);
    await later(IDLE_S);
    // One is enough for two requests. The second keeps the one it has, and gets no other.
    one.release({});
    const three = await acquire();
    expect([three.machineId, state(second)]).toEqual([first, "running"]);
    const four = await acquire();
    const five = await acquire();
    expect([four.machineId, five.machineId], "the first is full now").toEqual([first, second]);
    await settled();
    for (const lease of [two, three, four, five]) lease.release({});
    // The burst counts for as long as idleness does.
    await later(IDLE_S - 1);
    expect([state(first), state(second)]).toEqual(["running", "running"]);
    await later(1);
    await settled();
    expect([state(first), state(second)].filter((now) => now === "running")).toHaveLength(1);
  });

  test("an app that asked to be kept awake is, but no longer than it asked for", async () => {
    const id = await machine();
    w.platform.guestApi.keepAwake(id, 3600, "encoding");
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    w.platform.guestApi.keepAwake(id, 0, "");
    await w.coordinator.check();
    await reach(id, "suspended");
  });

  test("a command that runs in a machine keeps it awake until it ends", async () => {
    const id = await machine();
    const command = w.platform.commands.run("shop", id, { args: ["cat"], input: true });
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    command.stdin.end();
    await command.exit;
    await w.coordinator.check();
    await reach(id, "suspended");
  });

  test("requests at another proxy count", async () => {
    const id = await machine();
    const lease = await acquireAt((await anotherProxy()).broker);
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    expect(w.coordinator.load(id)).toBe(1);
    lease.release({});
    await later(IDLE_S);
    await reach(id, "suspended");
  });

  test("a request between the question and the sleep is not lost: the machine stays awake, or wakes for it", async () => {
    const id = await machine();
    await settled();
    w.now += IDLE_S * 1000;
    const checking = w.coordinator.check();
    const lease = await acquire();
    await checking;
    expect(lease.machineId).toBe(id);
    await reach(id, "running");
    lease.release({});
  });

  test("a proxy that does not answer is assumed to need the machine", async () => {
    const id = await machine();
    const silent = w.coordinator.connect(() => {});
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    silent.close();
    await later(IDLE_S);
    await reach(id, "suspended");
  });

  test("a proxy that lost its connection may return with requests open: its machines stay awake for a moment", async () => {
    const id = await machine();
    const lost = await anotherProxy();
    await acquireAt(lost.broker);
    await settled();
    w.proxies.pop();
    lost.close();
    await later(IDLE_S);
    expect(state(id)).toBe("running");
    await later(5);
    await reach(id, "suspended");
  });

  test("without any proxy the platform does not know what is open, and nothing sleeps", async () => {
    const id = await machine();
    for (const proxy of w.proxies.splice(0)) proxy.close();
    await later(3600);
    expect(state(id)).toBe("running");
  });
});
