/** Requests that ask for one machine: it wakes, the others keep sleeping, and no other one answers. */
import type { ServiceConfig } from "@hibernaut/domain/service-config";
import { describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import type { Lease, RequestHead } from "../src/contract.ts";
import { IDLE_S, request, useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

const OWN = { machine_hostnames: true };
const at = (word: string, more: Partial<RequestHead> = {}) => w.acquire({ host: `${word}.shop.localhost`, ...more });
const field = (name: string, value: string) => ({ fields: [{ name, key: name.toLowerCase(), value }] });

/** Sends a request to where an app sent it on to. */
async function sentTo(
  machineId: string | undefined,
  app = "shop",
  signal = new AbortController().signal,
): Promise<Lease> {
  const { broker } = w;
  const head = request({ to: { from: "shop", app, machineId } });
  return broker.leaseNow(app, head) ?? broker.waitForLease(app, head, signal);
}

const named = (name: string, service: Partial<ServiceConfig> = {}) => w.machine({ ...OWN, ...service }, {}, name);

describe("by its hostname", () => {
  test("a sleeping machine wakes, and only it", async () => {
    const ids = [
      await w.asleep(await w.machine(OWN)),
      await w.asleep(await w.machine(OWN)),
      await w.asleep(await w.machine(OWN)),
    ];
    const [first, second, third] = ids as [string, string, string];
    const lease = await at(second);
    expect([lease.machineId, lease.wake.kind]).toEqual([second, "resume"]);
    expect([w.state(first), w.state(third)]).toEqual(["suspended", "suspended"]);
    lease.release({});
  });

  test("no machine and no app answers at a name under which someone has opened the dashboard", async () => {
    await named("anna");
    const { hostnames } = w.platform;
    hostnames.subscribe(() => w.coordinator.hostnamesChanged());
    hostnames.add("shop", "www.example.com");
    await w.settled();
    const names = ["www.example.com", "anna.shop.localhost", "shop.localhost"];
    for (const host of names) expect(await w.acquire({ host })).toMatchObject({ appName: "shop" });
    // It was opened there before there was such an app.
    for (const name of names) w.world.store.reservedNames.note(name, 1, 10);
    hostnames.signIn("desk.example.com", true);
    await w.settled();
    // A proxy that connects now is told with the whole table.
    await w.anotherProxy();
    for (const { broker } of w.proxies)
      for (const host of [...names, "shop.localhost."]) expect(() => broker.route(host), host).toThrow(host);
  });

  test("a machine has its name, and another port", async () => {
    const id = await named("anna");
    const { record } = w.machines.get("shop", id);
    const services = [...(record.config.services ?? []), { internal_port: 9090, ...OWN }, { internal_port: 5432 }];
    await w.machines.update("shop", id, { ...record.config, services });
    await w.reach(id, "running");
    await w.settled();
    expect(await at("anna")).toMatchObject({ machineId: id, port: 8080 });
    expect(await at("9090--anna")).toMatchObject({ machineId: id, port: 9090 });
    const refusal = { status: 404, code: "unknown_port", message: expect.stringContaining("machine_hostnames = true") };
    await expect(at("5432--anna")).rejects.toMatchObject(refusal);
    await expect(at("1--anna")).rejects.toMatchObject(refusal);
  });

  test("nobody else answers for a machine that is not there, or is gone", async () => {
    const [stays, goes] = [await w.machine(OWN), await w.machine(OWN)];
    const missing = {
      status: 404,
      code: "unknown_machine",
      message: expect.stringContaining("hibernaut machine list"),
    };
    await expect(at("nobody")).rejects.toMatchObject(missing);
    await expect(at(goes.slice(0, 13))).rejects.toMatchObject(missing);
    w.machines.destroy("shop", goes, { force: true });
    await w.reach(goes, "destroyed");
    await w.settled();
    await expect(at(goes)).rejects.toMatchObject(missing);
    expect((await at(stays)).machineId).toBe(stays);
  });

  test("without the switch, neither hostnames nor headers choose", async () => {
    const [first, second] = [await w.machine(), await w.machine()];
    await expect(at(first)).rejects.toMatchObject({ status: 404, code: "unknown_host" });
    for (const name of ["Hibernaut-Machine", "fly-force-instance-id", "fly-prefer-instance-id"]) {
      const lease = await w.acquire(field(name, second));
      expect(lease.machineId).toBe(first);
      lease.release({});
    }
  });

  test("the switch is each machine's own", async () => {
    const [off, on] = [await w.machine(), await w.machine(OWN)];
    expect((await at(on)).machineId).toBe(on);
    await expect(at(off)).rejects.toMatchObject({ code: "unknown_port" });
  });
});

describe("by a header", () => {
  test.each(["Hibernaut-Machine", "fly-force-instance-id"])("%s leads to it or nowhere", async (name) => {
    const [first, second] = [await w.machine(OWN), await w.asleep(await w.machine(OWN))];
    expect((await w.acquire(field(name, second))).machineId).toBe(second);
    await expect(w.acquire(field(name, "nobody"))).rejects.toMatchObject({ status: 404, code: "unknown_machine" });
    await expect(at(first, field(name, second))).rejects.toMatchObject({ status: 400, code: "machine_conflict" });
  });

  test("a preferred machine wakes, and is passed over if it cannot take the request", async () => {
    const full = { ...OWN, concurrency: { soft_limit: 1, hard_limit: 1 } };
    const [first, second] = [await w.machine(OWN), await w.asleep(await w.machine(full))];
    const prefer = field("fly-prefer-instance-id", second);
    const lease = await w.acquire(prefer);
    expect([lease.machineId, lease.wake.kind]).toEqual([second, "resume"]);
    expect((await w.acquire(prefer)).machineId, "it is at its hard limit").toBe(first);
    lease.release({});
    w.machines.cordon("shop", second, { on: true });
    await w.settled();
    expect((await w.acquire(prefer)).machineId, "it is cordoned").toBe(first);
    w.machines.cordon("shop", second, { on: false });
    await w.settled();
    expect((await w.acquire({ ...prefer, tried: [second] })).machineId, "it was tried").toBe(first);
  });
});

describe("a machine that cannot take the request", () => {
  test("is cordoned: awake or asleep, it is left alone", async () => {
    const [id] = [await w.machine(OWN), await w.machine(OWN)];
    w.machines.cordon("shop", id, { on: true });
    await w.settled();
    const cordoned = {
      status: 503,
      code: "machine_cordoned",
      message: expect.stringContaining(`uncordon ${id} --app`),
    };
    await expect(at(id)).rejects.toMatchObject(cordoned);
    await w.asleep(id);
    await expect(at(id)).rejects.toMatchObject(cordoned);
    expect(w.state(id)).toBe("suspended");
  });

  test("crashes", async () => {
    const [, id] = [await w.machine(OWN), await w.asleep(await w.machine(OWN), "stop")];
    w.world.host.crashing.add(id);
    await expect(at(id)).rejects.toMatchObject({ status: 503, code: "app_crashed" });
  });

  test("failed to start, while another one runs", async () => {
    const [, id] = [await w.machine(OWN), await w.asleep(await w.machine(OWN), "stop")];
    w.world.host.faults.boot = new Error("no room for its memory");
    await expect(at(id)).rejects.toMatchObject({ status: 503, code: "machine_failed" });
  });

  test("is not started by requests", async () => {
    const [, id] = [
      await w.machine(OWN),
      await w.asleep(await w.machine({ ...OWN, autostop: "off", autostart: false })),
    ];
    const message = expect.stringContaining(`hibernaut machine start ${id} --app shop`);
    await expect(at(id)).rejects.toMatchObject({ status: 503, code: "not_running", message });
  });

  test("was tried: no other one is", async () => {
    const [first] = [await w.machine(OWN), await w.machine(OWN)];
    await expect(at(first, { tried: [first] })).rejects.toMatchObject({ status: 502, code: "no_machine_left" });
  });

  test("is destroyed while its request waits", async () => {
    const id = await w.asleep(await w.machine(OWN), "stop");
    await w.machine(OWN);
    const release = w.world.holdBoots();
    const refusal = at(id).then(
      () => "a lease",
      (error: { code?: string }) => error.code,
    );
    await expect.poll(() => w.held()).toBe(1);
    w.machines.destroy("shop", id, { force: true });
    release();
    expect(await refusal).toBe("unknown_machine");
  });

  test("is not started during a drain", async () => {
    const [, id] = [await w.machine(OWN), await w.asleep(await w.machine(OWN))];
    w.platform.drain.begin({});
    await w.settled();
    await expect(at(id)).rejects.toMatchObject({ status: 503, code: "draining" });
    w.platform.drain.end();
  });
});

describe("waiting", () => {
  test("a request for one machine neither holds up those for others, nor waits for them", async () => {
    const limit = { ...OWN, concurrency: { soft_limit: 1, hard_limit: 1 } };
    const [first, second] = [await w.machine(limit), await w.machine(limit)];
    const [onFirst, onSecond] = [await at(first), await at(second)];
    const order: string[] = [];
    const wait = async (what: string, lease: Promise<Lease>) => {
      const got = await lease;
      order.push(what);
      return got;
    };
    const [one, two, any] = [wait("first", at(first)), wait("second", at(second)), wait("any", w.acquire())];
    await w.settled();
    expect(w.held()).toBe(3);
    onSecond.release({});
    const gotSecond = await two;
    expect(gotSecond.machineId).toBe(second);
    expect([order, w.held()]).toEqual([["second"], 2]);
    gotSecond.release({});
    expect((await any).machineId).toBe(second);
    onFirst.release({});
    expect((await one).machineId).toBe(first);
    expect(order).toEqual(["second", "any", "first"]);
  });

  test("a request that waits in vain is told of its machine", async () => {
    const id = await w.machine(OWN);
    w.unhealthy.add(id);
    w.coordinator.healthChanged(id);
    const proxy = await w.anotherProxy({ holdTimeoutMs: 1 });
    const head = request({ host: `${id}.shop.localhost` });
    expect(proxy.broker.leaseNow("shop", head)).toBeUndefined();
    await expect(proxy.broker.waitForLease("shop", head, AbortSignal.timeout(9e6))).rejects.toMatchObject({
      status: 504,
      code: "wake_timeout",
      message: expect.stringMatching(new RegExp(`^Machine ${id} of app shop was not ready within 0\\.001 s\\.`)),
    });
  });
});

describe("pinned machines", () => {
  const PINNED = { ...OWN, placement: "pinned" as const };

  test("each sleeps by itself: none is spared for another, and none is kept for one", async () => {
    const [busy, idle, last] = [await w.machine(PINNED), await w.machine(PINNED), await w.machine(PINNED)];
    const open = await at(busy);
    await w.later(IDLE_S);
    await w.reach(idle, "suspended");
    await w.reach(last, "suspended");
    expect(w.state(busy)).toBe("running");
    // Two that are used a little are both kept: neither is the other's excess.
    const lease = await at(idle);
    await w.later(3 * IDLE_S);
    expect([w.state(busy), w.state(idle)]).toEqual(["running", "running"]);
    expect([busy, idle].map((id) => w.coordinator.activity(id)?.reason)).toEqual(["open_requests", "open_requests"]);
    open.release({});
    lease.release({});
    await w.later(IDLE_S);
    await w.reach(busy, "suspended");
    await w.reach(idle, "suspended");
  });

  test("min_machines_running does not apply to them", async () => {
    const id = await w.machine({ ...PINNED, min_machines_running: 2 });
    await w.later(IDLE_S);
    await w.reach(id, "suspended");
  });

  test("a request that names none goes to the others, and to a pinned one only if there are no others", async () => {
    const pinned = await w.machine(PINNED);
    expect((await w.acquire()).machineId).toBe(pinned);
    const shared = await w.asleep(await w.machine());
    expect((await w.acquire()).machineId).toBe(shared);
    expect((await w.acquire({ tried: [] })).machineId).toBe(shared);
    await expect(w.acquire({ tried: [shared] })).rejects.toMatchObject({ code: "no_machine_left" });
  });

  test("a TCP connection, which names none, goes to the others as well, and is not redirected to HTTPS", async () => {
    const open = { ports: [{ port: 45_432 }], force_https: true };
    const [pinned, shared] = [await w.machine({ ...PINNED, ...open }), await w.machine(open)];
    const proxy = await w.anotherProxy({ tlsPort: () => 8443 });
    const connection = request({ method: "TCP", host: "", target: ":45432", tcpPort: 45_432 });
    expect(proxy.broker.leaseNow("shop", connection)).toMatchObject({ machineId: shared, port: 8080 });
    const inVain = () => proxy.broker.leaseNow("shop", { ...connection, tried: [shared] });
    expect(inVain).toThrow(/could be reached/);
    w.machines.destroy("shop", shared, { force: true });
    await w.reach(shared, "destroyed");
    await w.settled();
    expect(proxy.broker.leaseNow("shop", connection)?.machineId).toBe(pinned);
  });

  test("asks for one by the hostname in its TLS, and gets its header", async () => {
    const ports = [{ port: 45_432, handlers: ["tls" as const, "proxy_proto" as const] }];
    const tls = { protocol: "tcp" as const, internal_port: 5432, ports, ...OWN };
    const [first, second] = [await w.asleep(await named("one", tls)), await w.asleep(await named("two", tls))];
    const web = await named("web");
    const connection = (host: string) => ({ method: "TCP", host, target: ":45432", tcpPort: 45_432 });
    const lease = await w.acquire(connection(`${second}.shop.localhost`));
    expect(lease).toMatchObject({ machineId: second, port: 5432, proxyProtocol: "v1" });
    expect(w.state(first)).toBe("suspended");
    await expect(w.acquire(connection("nobody.shop.localhost"))).rejects.toMatchObject({ code: "unknown_machine" });
    await expect(w.acquire(connection(`${web}.shop.localhost`))).rejects.toMatchObject({ code: "unknown_port" });
    // The app's own name leads to any machine with the port.
    expect([first, second]).toContain((await w.acquire(connection("shop.localhost"))).machineId);
  });
});

describe("a request that was sent on", () => {
  test("wakes its machine, without the switch, whatever its hostname and headers say", async () => {
    const [first, second] = [await w.asleep(await w.machine()), await w.asleep(await w.machine())];
    expect((await sentTo(second)).machineId).toBe(second);
    expect(w.state(first)).toBe("suspended");
    w.machines.cordon("shop", first, { on: true });
    await w.settled();
    await expect(sentTo(first)).rejects.toMatchObject({ code: "machine_cordoned" });
    await expect(sentTo("nobody")).rejects.toMatchObject({ code: "unknown_machine" });
    expect((await sentTo(undefined)).machineId).toBe(second);
  });

  test("goes only where the other app allows it", async () => {
    w.platform.apps.create("users");
    const services = [{ internal_port: 8080, replay_from: ["shop"] }];
    const { record } = await w.machines.create("users", { name: "anna", config: { ...SMALL, services } });
    await w.machines.wait("users", record.id, ["running"], { timeoutMs: 5000 });
    const own = await w.machine();
    await w.settled();
    const { broker } = w;
    const order = { app: "users", machine: "anna", state: undefined };
    expect(broker.replayTo(order, "shop")).toEqual({ from: "shop", app: "users", machineId: record.id });
    expect(() => broker.replayTo({ ...order, app: "shop", machine: own }, "users")).toThrow(/does not allow it/);
    expect((await sentTo(record.id, "users")).appName).toBe("users");
    await expect(sentTo(record.id, "shop")).rejects.toMatchObject({ code: "unknown_machine" });
  });
});
