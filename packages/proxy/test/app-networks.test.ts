/** Apps that share a network: which ports wake them from inside, and what stays closed from outside. */
import { expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { ConnectedProxies } from "../src/connected-proxies.ts";
import { ownPort, ownPortsOf } from "../src/tcp/ports.ts";
import { request, useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

test("each service has its port at the app's own address; a published number comes before one that is listened at", () => {
  const services = [
    { internal_port: 3000, protocol: "http" as const, idle: "quiet" as const },
    { internal_port: 5432, ports: [{ port: 15432, handlers: ["pg_tls" as const] }] },
    { internal_port: 80, ports: [{ port: 3000, handlers: ["proxy_proto" as const] }] },
  ];
  expect(ownPortsOf({ services })).toEqual([
    { port: ownPort(3000), internal: 80, proxyProtocol: "v1" },
    { port: ownPort(5432), internal: 5432 },
    { port: ownPort(80), internal: 80, proxyProtocol: "v1" },
    { port: ownPort(15432), internal: 5432 },
  ]);
});

test("a sleeping database is woken from inside, and neither HTTP nor a port of the proxy leads to it", async () => {
  const { platform, machines } = w;
  platform.apps.create("cafe-db", { network: "cafe", aliases: ["db"] });
  const config = { ...SMALL, services: [{ internal_port: 5432, autostop: "suspend" as const }] };
  const { record } = await machines.create("cafe-db", { config });
  const reach = (state: "running" | "suspended") => machines.wait("cafe-db", record.id, [state], { timeoutMs: 5000 });
  await reach("running");
  machines.suspend("cafe-db", record.id);
  await reach("suspended");
  await w.settled();
  const { broker } = w;
  expect(broker.ownPorts()).toEqual(new Map([["cafe-db", new Set([ownPort(5432)])]]));
  expect(broker.tcpPorts()).toEqual(new Map());
  expect(() => broker.route("cafe-db.localhost")).toThrow("cafe-db.localhost");
  expect(machines.get("cafe-db", record.id).record.state).toBe("suspended");
  const lease = await broker.waitForLease(
    "cafe-db",
    request({ tcpPort: ownPort(5432), host: "" }),
    new AbortController().signal,
  );
  expect(lease).toMatchObject({ machineId: record.id, port: 5432, wake: { kind: "resume" } });
  lease.release({});
});

/** A sleeping machine of a new app. */
async function sleeper(app: string, place: { network?: string; wakes?: string[] }, autostart = true): Promise<string> {
  const { platform, machines } = w;
  platform.apps.create(app, place);
  const services = [{ internal_port: 8080, protocol: "http" as const, autostop: "suspend" as const, autostart }];
  const { record } = await machines.create(app, { config: { ...SMALL, services } });
  await machines.wait(app, record.id, ["running"], { timeoutMs: 5000 });
  machines.suspend(app, record.id);
  await machines.wait(app, record.id, ["suspended"], { timeoutMs: 5000 });
  await w.settled();
  return record.id;
}

test("a request wakes what the app is known to need next to it, and nobody outside its network", async () => {
  const wakes = ["cafe-db", "cafe-job", "elsewhere", "gone", "cafe-web"];
  await sleeper("cafe-web", { network: "cafe", wakes });
  const db = await sleeper("cafe-db", { network: "cafe" });
  const byHand = await sleeper("cafe-job", { network: "cafe" }, false);
  const other = await sleeper("elsewhere", { network: "other" });
  const head = request({ host: "cafe-web.localhost" });
  (await w.broker.waitForLease("cafe-web", head, new AbortController().signal)).release({});
  await w.machines.wait("cafe-db", db, ["running"], { timeoutMs: 5000 });
  expect(w.machines.get("cafe-job", byHand).record.state).toBe("suspended");
  expect(w.machines.get("elsewhere", other).record.state).toBe("suspended");
});

test("a proxy for neighbours alone does not say what visitors have open", () => {
  const proxies = new ConnectedProxies();
  proxies.add(() => {}, { forVisitors: false });
  expect(proxies.hasOneForVisitors).toBe(false);
  proxies.add(() => {});
  expect(proxies.hasOneForVisitors).toBe(true);
});

test("outside a network, a service that does not say what it speaks takes HTTP, as ever", async () => {
  await w.machine({ internal_port: 5432 });
  await w.settled();
  expect(w.broker.ownPorts()).toEqual(new Map());
  expect(w.broker.route("shop.localhost")).toBe("shop");
});
