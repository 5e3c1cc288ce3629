/** Waking: requests to machines that run, sleep, crash or are full. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { describe, expect, test, vi } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { acquireAt, request, useProxyWorld, w } from "./proxy-world.ts";

const TIMEOUT_MS = 5000;

useProxyWorld();

describe("waking", () => {
  test("a request to a running machine is sent there at once", async () => {
    const id = await w.machine();
    const lease = await w.acquire();
    expect(lease).toMatchObject({
      machineId: id,
      appName: "shop",
      port: 8080,
      wake: { kind: "running", durationMs: 0 },
    });
    lease.release({});
  });

  test("a request to a suspended machine resumes it, and its lease says so", async () => {
    const id = await w.asleep(await w.machine());
    const waiting = w.acquire();
    w.now += 212;
    const lease = await waiting;
    expect(lease.wake).toEqual({ kind: "resume", durationMs: 212 });
    expect(w.wakes).toEqual([lease.wake]);
    expect(w.machines.get("shop", id).record.lastBoot?.kind).toBe("resume");
    lease.release({ status: 200 });
  });

  test("a request whose machine ended says how it started again, even if it runs again by now", async () => {
    const id = await w.machine();
    const came = w.now;
    const [process] = w.world.host.of(id);
    if (process) w.world.host.end(process.ref);
    await vi.waitFor(() => expect(w.ended).toHaveLength(1), TIMEOUT_MS);
    await w.reach(id, "running");
    await w.settled();
    w.now += 300;
    const again = await w.acquire({ since: came });
    expect(again.wake).toEqual({ kind: "cold", durationMs: expect.any(Number) });
    expect(again.wake.durationMs).toBeGreaterThanOrEqual(300);
    // One that came only now did not wait for it.
    const late = await w.acquire({ since: w.now });
    const running = { kind: "running", durationMs: 0 };
    expect([late.wake, (await w.acquire()).wake]).toEqual([running, running]);
    expect(w.wakes).toEqual([again.wake]);
  });

  test("200 requests to one sleeping machine cause one resume, and all are served", async () => {
    const id = await w.asleep(await w.machine({ concurrency: { soft_limit: 1000 } }));
    const leases = await Promise.all(Array.from({ length: 200 }, () => w.acquire()));
    expect(new Set(leases.map((lease) => lease.machineId))).toEqual(new Set([id]));
    expect(w.world.host.restored).toHaveLength(1);
    const starts = w.machines
      .events("shop", id, 100)
      .filter(({ type, from }) => type === "start" && from === "suspended");
    expect(starts).toHaveLength(1);
    for (const lease of leases) lease.release({});
  });

  test("the end of a guest is told, whatever ends it; a sleep, a drain and a wake are not one", async () => {
    const id = await w.machine();
    await w.asleep(id);
    (await w.acquire()).release({});
    await w.settled();
    expect(w.ended).toEqual([]);
    const [process] = w.world.host.of(id);
    if (process) w.world.host.end(process.ref);
    await vi.waitFor(() => expect(w.ended).toHaveLength(1), TIMEOUT_MS);
    await w.reach(id, "running");
    w.machines.stop("shop", id);
    await w.reach(id, "stopped");
    await vi.waitFor(() => expect(w.ended).toHaveLength(2), TIMEOUT_MS);
    w.machines.destroy("shop", id);
    await vi.waitFor(() => expect(w.ended).toHaveLength(3), TIMEOUT_MS);
    expect(w.ended).toEqual([id, id, id]);
  });

  test("a suspended machine is started before a stopped one", async () => {
    const stopped = await w.asleep(await w.machine(), "stop");
    const suspended = await w.asleep(await w.machine());
    expect((await w.acquire()).machineId).toBe(suspended);
    expect(w.state(stopped)).toBe("stopped");
  });

  test("a stopped machine cold starts", async () => {
    await w.asleep(await w.machine(), "stop");
    expect((await w.acquire()).wake.kind).toBe("cold");
  });

  test("a failed resume becomes a cold start while the request is held", async () => {
    await w.asleep(await w.machine());
    w.world.host.faults.restore = new Error("the snapshot cannot be loaded");
    expect((await w.acquire()).wake.kind).toBe("cold");
  });

  test("a request that arrives while its machine is being suspended cancels that", async () => {
    const id = await w.machine();
    const capture = Promise.withResolvers<void>();
    w.world.host.hold.capture = capture.promise;
    w.machines.suspend("shop", id);
    await w.settled();
    w.now += 100;
    const waiting = w.acquire();
    await w.settled();
    capture.resolve();
    // The same guest kept running: it was not started again.
    expect(await waiting).toMatchObject({ machineId: id, wake: { kind: "running" } });
    const types = w.machines.events("shop", id, 3).map(({ type }) => type);
    expect(types[0]).toBe("capture_cancelled");
  });

  test("all at the soft limit: the request is served, and another machine is woken for the next", async () => {
    const first = await w.machine({ concurrency: { soft_limit: 1, hard_limit: 2 } });
    const second = await w.asleep(await w.machine({ concurrency: { soft_limit: 1, hard_limit: 2 } }));
    expect((await w.acquire()).machineId).toBe(first);
    expect(w.state(second)).toBe("suspended");
    expect((await w.acquire()).machineId).toBe(first);
    await w.reach(second, "running");
    await w.settled();
    expect((await w.acquire()).machineId).toBe(second);
  });

  test("at the hard limit, the next request waits for room", async () => {
    const id = await w.machine({ concurrency: { soft_limit: 1, hard_limit: 1 } });
    const first = await w.acquire();
    const waiting = w.acquire();
    await w.settled();
    expect(w.connected.load(id)).toBe(1);
    expect(w.held()).toBe(1);
    first.release({});
    expect((await waiting).machineId).toBe(id);
  });

  test("connections count once, however many requests they carry", async () => {
    const id = await w.machine({ concurrency: { type: "connections", soft_limit: 1, hard_limit: 1 } });
    const connection = {};
    const leases = [await w.acquire({ connection })];
    const other = w.acquire();
    await w.settled();
    expect(w.connected.load(id)).toBe(1);
    expect(w.held()).toBe(1);
    leases[0]?.release({});
    await other;
  });

  test("no app answers for a hostname that none has", async () => {
    await w.machine();
    await expect(w.acquire({ host: "unknown.localhost" })).rejects.toMatchObject({ status: 404, code: "unknown_host" });
  });

  test("without autostart a sleeping machine stays asleep: 503", async () => {
    await w.asleep(await w.machine({ autostop: "off", autostart: false }));
    await expect(w.acquire()).rejects.toMatchObject({ status: 503, code: "not_running" });
  });

  test("a machine that cannot start is reported as failed, and started again only after a rest", async () => {
    const id = await w.asleep(await w.machine(), "stop");
    w.world.host.faults.boot = new Error("no room for its memory");
    await expect(w.acquire()).rejects.toMatchObject({ status: 503, code: "machine_failed", retryAfterS: 10 });
    await expect(w.acquire()).rejects.toMatchObject({ message: expect.stringMatching(/no room for its memory/) });
    expect(w.state(id)).toBe("failed");
    w.now += 10_000;
    expect((await w.acquire()).wake.kind).toBe("cold");
  });

  test("a machine whose last virtual machine has not ended refuses requests with the reason, and is not tried again at once", async () => {
    const id = await w.machine();
    w.world.host.holding.add(id);
    await w.asleep(id);
    const message = expect.stringMatching(/could not be started: .* was killed and has not ended/);
    await expect(w.acquire()).rejects.toMatchObject({ status: 503, code: "machine_failed", message });
    await expect(w.acquire()).rejects.toMatchObject({ status: 503, code: "machine_failed", message, retryAfterS: 10 });
    expect(w.machines.events("shop", id, 100).filter(({ type }) => type === "start")).toHaveLength(1 + 1);
    w.world.host.letGo(id);
    w.now += 10_000;
    expect((await w.acquire()).wake.kind).toBe("resume");
  });

  test("a virtual machine that ends twice in a row is not called a crash of its app", async () => {
    const id = await w.machine();
    const lose = () => w.world.host.of(id).forEach(({ ref }) => w.world.host.end(ref));
    lose();
    await w.reach(id, "restarting");
    // Once may be an accident.
    expect((await w.acquire()).machineId).toBe(id);
    lose();
    await w.reach(id, "restarting");
    await w.settled();
    const message = `The virtual machine of machine ${id} of app shop ended several times in a row`;
    const told = { status: 503, code: "machine_failed", message: expect.stringContaining(message), retryAfterS: 1 };
    await expect(w.acquire()).rejects.toMatchObject(told);
  });

  describe("an app that crashes when it starts", () => {
    const crashing = async (restart: MachineConfig["restart"] = {}) => {
      const id = await w.asleep(await w.machine({}, { restart }), "stop");
      w.world.host.crashing.add(id);
      return id;
    };

    test("refuses a waiting request once it has crashed, and the next ones at once, until it comes up", async () => {
      const id = await crashing();
      const told = { status: 503, code: "app_crashed", message: expect.stringMatching(/the app exited with code 1/) };
      await expect(w.acquire()).rejects.toMatchObject(told);
      await w.reach(id, "restarting");
      await expect(w.acquire()).rejects.toMatchObject({ ...told, retryAfterS: 1 });
      expect(w.state(id)).toBe("restarting");
      expect(w.machines.events("shop", id, 100).filter(({ type }) => type === "start")).toHaveLength(1 + 1);
      w.world.host.crashing.clear();
      await w.reach(id, "running");
      await w.settled();
      expect((await w.acquire()).machineId).toBe(id);
    });

    test("is started by a request again, after a rest, once its restart policy has given up", async () => {
      const id = await crashing({ policy: "no" });
      await expect(w.acquire()).rejects.toMatchObject({ status: 503, code: "app_crashed" });
      await w.reach(id, "stopped");
      await w.settled();
      await expect(w.acquire()).rejects.toMatchObject({ status: 503, code: "app_crashed", retryAfterS: 10 });
      w.world.host.crashing.clear();
      w.now += 10_000;
      expect((await w.acquire()).wake.kind).toBe("cold");
    });

    test("leaves its requests to another machine of the app", async () => {
      await crashing();
      const id = await w.machine();
      expect((await w.acquire()).machineId).toBe(id);
    });
  });

  test("requests wait for an app that was running and crashed once", async () => {
    const id = await w.machine();
    w.world.host.guest(id)?.exit(1);
    await w.reach(id, "restarting");
    await w.settled();
    expect((await w.acquire()).machineId).toBe(id);
  });

  test("an app that listens only on loopback is reported as unreachable at once, until it listens elsewhere", async () => {
    const { record } = await w.machines.create("shop", { config: SMALL, skipLaunch: true });
    w.world.host.listening.set(record.id, [{ address: "127.0.0.1", port: 8080 }]);
    w.machines.start("shop", record.id);
    const message = expect.stringMatching(/listens on 127\.0\.0\.1:8080 only/);
    await expect(w.acquire()).rejects.toMatchObject({ status: 502, code: "upstream_unreachable", message });
    await w.reach(record.id, "running");
    w.world.host.guest(record.id)?.listen();
    await expect.poll(() => w.machines.get("shop", record.id).record.unreachable).toBeNull();
    await w.settled();
    expect((await w.acquire()).machineId).toBe(record.id);
  });

  test("a full queue refuses with 503, a long wait ends with 504, and a client that leaves frees its place", async () => {
    const { broker } = await w.anotherProxy({ maxHeld: 2, holdTimeoutMs: 300 });
    const id = await w.asleep(await w.machine());
    const start = w.machines.start.bind(w.machines);
    w.machines.start = () => ({ previousState: "suspended" }); // the wake gets lost
    const leaving = new AbortController();
    const [first, second] = [
      acquireAt(broker, request(), leaving.signal),
      acquireAt(broker, request(), AbortSignal.timeout(9e6)),
    ];
    await expect(acquireAt(broker, request(), AbortSignal.timeout(9e6))).rejects.toMatchObject({
      status: 503,
      code: "too_many_held",
      retryAfterS: 1,
    });
    leaving.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    await expect(second).rejects.toMatchObject({ status: 504, code: "wake_timeout" });
    expect(broker.held().get("shop") ?? 0).toBe(0);
    w.machines.start = start;
    expect(w.state(id)).toBe("suspended");
  });
});

describe("while the platform drains", () => {
  test("a request that would wake a machine is refused at once, and one to a running machine is served", async () => {
    const [sleeps, runs] = [await w.asleep(await w.machine()), await w.machine()];
    w.platform.drain.begin({});
    const lease = await w.acquire();
    expect(lease.machineId).toBe(runs);
    lease.release({});
    await w.asleep(runs);
    await expect(w.acquire()).rejects.toMatchObject({ status: 503, code: "draining", retryAfterS: 30 });
    expect([w.state(sleeps), w.state(runs)]).toEqual(["suspended", "suspended"]);
    w.platform.drain.end();
    await w.settled();
    (await w.acquire()).release({});
  });

  test("a request that waits for a machine is refused as soon as nothing will come of it", async () => {
    const id = await w.asleep(await w.machine(), "stop");
    const release = w.world.holdBoots();
    const refusal = w.acquire().then(
      () => "a lease",
      (error: { code?: string }) => error.code,
    );
    await w.settled();
    expect(w.state(id)).toBe("starting");
    w.platform.drain.begin({});
    await w.settled();
    expect(w.held(), "the start was accepted before the drain").toBe(1);
    w.machines.stop("shop", id);
    release();
    expect(await refusal).toBe("draining");
  });

  test("a proxy that connects in the middle of a drain knows of it", async () => {
    await w.asleep(await w.machine());
    w.platform.drain.begin({});
    const late = await w.anotherProxy();
    await expect(acquireAt(late.broker)).rejects.toMatchObject({ code: "draining" });
  });
});

describe("an app with as many running machines as it may have", () => {
  test("answers that to a request that needs another, and wakes it once one has stopped", async () => {
    const id = await w.asleep(await w.machine());
    const { record: worker } = await w.machines.create("shop", { config: { ...SMALL, services: [] } });
    await w.reach(worker.id, "running");
    w.world.store.apps.setQuota("shop", { running: 1 });
    const refusal = {
      status: 503,
      code: "over_quota",
      message: expect.stringContaining("for machines that run at once is 1"),
    };
    await expect(w.acquire()).rejects.toMatchObject(refusal);
    expect(w.state(id)).toBe("suspended");
    // For a moment, the refusal is repeated without another attempt; then another attempt is made.
    w.machines.stop("shop", worker.id);
    await w.reach(worker.id, "stopped");
    await expect(w.acquire()).rejects.toMatchObject(refusal);
    w.now += 2000;
    (await w.acquire()).release({});
    expect(w.state(id)).toBe("running");
  });

  test("sends requests to the ones that run", async () => {
    const runs = await w.machine();
    await w.asleep(await w.machine());
    w.world.store.apps.setQuota("shop", { running: 1 });
    const leases = await Promise.all(Array.from({ length: 5 }, () => w.acquire()));
    expect(new Set(leases.map(({ machineId }) => machineId))).toEqual(new Set([runs]));
    for (const lease of leases) lease.release({});
  });
});
