/** Sleeping: machines that no proxy needs. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { acquireAt, IDLE_S, useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

describe("sleeping", () => {
  test("a machine sleeps when nothing was open on it for its idle timeout, and not before", async () => {
    const id = await w.machine();
    const lease = await w.acquire();
    await w.later(60);
    expect(w.state(id)).toBe("running");
    lease.release({});
    await w.later(IDLE_S - 1);
    expect(w.state(id)).toBe("running");
    await w.later(1);
    await w.reach(id, "suspended");
    const event = w.machines.events("shop", id, 5).find(({ type }) => type === "suspend");
    expect(event?.details).toMatchObject({ by: "proxy", idle_ms: IDLE_S * 1000 });
    expect(w.left).toContain(id);
  });

  test("with idle = quiet, a silent tunnel counts for nothing, until something passes", async () => {
    await w.letConnectionsSurvive();
    const { broker } = await w.anotherProxy();
    const id = await w.machine({ idle: "quiet" });
    const lease = await acquireAt(broker);
    lease.upgraded?.();
    await w.later(60);
    expect(w.state(id), "it is not quiet yet").toBe("running");
    lease.quiet?.(true);
    await w.later(IDLE_S - 1);
    lease.quiet?.(false);
    await w.later(60);
    expect(w.state(id)).toBe("running");
    lease.quiet?.(true);
    lease.quiet?.(true);
    await w.later(IDLE_S);
    await w.reach(id, "suspended");
    await w.settled();
    lease.quiet?.(false);
    lease.wanted?.();
    await w.reach(id, "running");
    await w.later(60);
    expect(w.state(id)).toBe("running");
    lease.release({});
    await w.later(IDLE_S);
    await w.reach(id, "suspended");
  });

  test("a silent tunnel keeps its machine awake where it would not survive the sleep, or unless its service says so", async () => {
    const id = await w.machine({ idle: "quiet" });
    const lease = await w.acquire();
    lease.upgraded?.();
    lease.quiet?.(true);
    await w.later(60);
    expect(w.state(id)).toBe("running");
    lease.release({});
  });

  test("with autostop = stop a machine is stopped, with off it keeps running", async () => {
    const stops = await w.machine({ autostop: "stop" });
    await w.later(IDLE_S);
    await w.reach(stops, "stopped");
    w.machines.destroy("shop", stops);
    const stays = await w.machine({ autostop: "off" });
    await w.later(3600);
    expect(w.state(stays)).toBe("running");
  });

  test("a machine that cannot be suspended is stopped instead, keeps its files, and says why", async () => {
    const id = await w.machine({}, { guest: { memory_mb: 4096 } });
    const layer = join(w.world.folder, "machines", id, "layer.ext4");
    await writeFile(layer, "what the app wrote");
    await w.later(IDLE_S);
    await w.reach(id, "stopped");
    const event = w.machines.events("shop", id, 5).find(({ type }) => type === "stop");
    expect(event?.details).toMatchObject({ keep_layer: true, reason: expect.stringMatching(/: memory is 4096 MB/) });
    expect(w.machines.get("shop", id).record.stateReason).toMatch(
      /^stopped while idle, because it cannot be suspended: memory is 4096 MB.*; its files are kept$/,
    );
    const lease = await w.acquire();
    expect(await readFile(layer, "utf8")).toBe("what the app wrote");
    lease.release({});
    w.machines.stop("shop", id);
    await w.reach(id, "stopped");
    w.machines.start("shop", id);
    await w.reach(id, "running");
    expect(await readFile(layer, "utf8"), "a stop that someone asked for is a new beginning").toBe("");
  });

  test("where its owner prefers that, a machine that cannot be suspended keeps running, and says so once", async () => {
    const id = await w.machine({ autostop_fallback: "off" }, { guest: { memory_mb: 4096 } });
    const remarks = () => w.machines.events("shop", id, 100).filter(({ type }) => type === "not_suspended");
    for (let nights = 0; nights < 3; nights += 1) await w.later(IDLE_S);
    expect(w.state(id)).toBe("running");
    expect(remarks()).toMatchObject([
      { from: "running", to: "running", details: { by: "proxy", reason: expect.stringMatching(/memory is 4096 MB/) } },
    ]);
    const lease = await w.acquire();
    expect(lease.wake.kind, "it has stayed in the rotation").toBe("running");
    lease.release({});
  });

  test("all superfluous machines sleep in one pass, down to the minimum", async () => {
    const ids = [];
    for (let i = 0; i < 4; i += 1) ids.push(await w.machine({ min_machines_running: 1 }));
    await w.later(IDLE_S);
    await w.settled();
    expect(ids.filter((id) => w.state(id) === "running")).toHaveLength(1);
    await w.later(3600);
    expect(ids.filter((id) => w.state(id) === "running")).toHaveLength(1);
  });

  test("a steady light load, spread by chance, leaves one machine awake; a burst brings the others back at once", async () => {
    const limits = { concurrency: { soft_limit: 3 } };
    const [first, second, third] = [await w.machine(limits), await w.machine(limits), await w.machine(limits)];
    // Two requests at a time keep one machine below its soft limit, and used to be spread over two.
    const open = [await w.acquire()];
    const seen = new Set<string>();
    for (let passed = 0; passed < 2 * IDLE_S; passed += 1) {
      open.push(await w.acquire());
      seen.add(open.at(-1)?.machineId ?? "");
      await w.later(1);
      open.shift()?.release({});
      await w.settled();
    }
    await w.reach(second, "suspended");
    await w.reach(third, "suspended");
    expect(seen).toContain(second);
    expect(open.map(({ machineId }) => machineId)).toEqual([first]);

    for (let full = open.length; full < 4; full += 1) open.push(await w.acquire());
    await w.reach(second, "running");
    await w.settled();
    expect((await w.acquire()).machineId).toBe(second);
  });

  test("a machine in excess finishes what is open on it, and takes new requests only when the others are full", async () => {
    const limits = { concurrency: { soft_limit: 2 } };
    const [first, second] = [await w.machine(limits), await w.machine(limits)];
    const [one, two] = [await w.acquire(), await w.acquire()];
    expect([one.machineId, two.machineId]).toEqual([first, second]);
    await w.later(IDLE_S);
    // One is enough for two requests. The second keeps the one it has, and gets no other.
    one.release({});
    const three = await w.acquire();
    expect([three.machineId, w.state(second)]).toEqual([first, "running"]);
    const four = await w.acquire();
    const five = await w.acquire();
    expect([four.machineId, five.machineId], "the first is full now").toEqual([first, second]);
    await w.settled();
    for (const lease of [two, three, four, five]) lease.release({});
    // The burst counts for as long as idleness does.
    await w.later(IDLE_S - 1);
    expect([w.state(first), w.state(second)]).toEqual(["running", "running"]);
    await w.later(1);
    await w.settled();
    expect([w.state(first), w.state(second)].filter((now) => now === "running")).toHaveLength(1);
  });

  test("an app that asked to be kept awake is, but no longer than it asked for", async () => {
    const id = await w.machine();
    w.platform.guestApi.keepAwake(id, 3600, "encoding");
    await w.later(IDLE_S);
    expect(w.state(id)).toBe("running");
    w.platform.guestApi.keepAwake(id, 0, "");
    await w.coordinator.check();
    await w.reach(id, "suspended");
  });

  test("a command that runs in a machine keeps it awake until it ends", async () => {
    const id = await w.machine();
    const command = w.platform.commands.run("shop", id, { args: ["cat"], input: true });
    await w.later(IDLE_S);
    expect(w.state(id)).toBe("running");
    command.stdin.end();
    await command.exit;
    await w.coordinator.check();
    await w.reach(id, "suspended");
  });

  test("requests at another proxy count", async () => {
    const id = await w.machine();
    const lease = await acquireAt((await w.anotherProxy()).broker);
    await w.later(IDLE_S);
    expect(w.state(id)).toBe("running");
    expect(w.connected.load(id)).toBe(1);
    lease.release({});
    await w.later(IDLE_S);
    await w.reach(id, "suspended");
  });

  test("a request between the question and the sleep is not lost: the machine stays awake, or wakes for it", async () => {
    const id = await w.machine();
    await w.settled();
    w.now += IDLE_S * 1000;
    const checking = w.coordinator.check();
    const lease = await w.acquire();
    await checking;
    expect(lease.machineId).toBe(id);
    await w.reach(id, "running");
    lease.release({});
  });

  test("a proxy that does not answer is assumed to need the machine", async () => {
    const id = await w.machine();
    const silent = w.coordinator.connect(() => {});
    await w.later(IDLE_S);
    expect(w.state(id)).toBe("running");
    silent.close();
    await w.later(IDLE_S);
    await w.reach(id, "suspended");
  });

  test("a proxy that lost its connection may return with requests open: its machines stay awake for a moment", async () => {
    const id = await w.machine();
    const lost = await w.anotherProxy();
    await acquireAt(lost.broker);
    await w.settled();
    w.proxies.pop();
    lost.close();
    await w.later(IDLE_S);
    expect(w.state(id)).toBe("running");
    await w.later(5);
    await w.reach(id, "suspended");
  });

  test("without any proxy the platform does not know what is open, and nothing sleeps", async () => {
    const id = await w.machine();
    for (const proxy of w.proxies.splice(0)) proxy.close();
    await w.later(3600);
    expect(w.state(id)).toBe("running");
  });
});
