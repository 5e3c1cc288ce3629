/** An app whose machines do different work: HTTP never reaches a database, and neither waits for the other. */
import type { ServiceConfig } from "@hibernaut/domain/service-config";
import { describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { IDLE_S, request, useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

const SLEEPS = { autostop: "suspend", idle_timeout: IDLE_S } as const;
const WEB: ServiceConfig = { protocol: "http", internal_port: 8080, ...SLEEPS };
const DB: ServiceConfig = { protocol: "tcp", internal_port: 5432, ports: [{ port: 5432 }], ...SLEEPS };

const http = () => w.acquire();
const tcp = () => w.acquire({ method: "TCP", tcpPort: 5432, connection: {} });

describe("a web server and its database", () => {
  test("a machine whose service becomes one of HTTP takes part from then on", async () => {
    const [web, other] = [await w.machine(WEB), await w.machine({ internal_port: 9000, ...SLEEPS })];
    const first = await http();
    expect(first.machineId).toBe(web);
    const { record } = w.machines.get("shop", other);
    await w.machines.update("shop", other, { ...record.config, services: [{ ...WEB, internal_port: 9000 }] });
    await w.reach(other, "running");
    await w.settled();
    expect((await http()).machineId).toBe(other);
  });

  test("HTTP goes to the web server, however busy that is, and wakes it although the database runs", async () => {
    const [web, db] = [await w.machine(WEB), await w.machine(DB)];
    const leases = await Promise.all(Array.from({ length: 30 }, http));
    expect(new Set(leases.map(({ machineId }) => machineId))).toEqual(new Set([web]));
    for (const lease of leases) lease.release({});
    await w.asleep(web);
    expect(w.state(db)).toBe("running");
    const woken = await http();
    expect([woken.machineId, woken.wake.kind]).toEqual([web, "resume"]);
    woken.release({});
  });

  test("a connection that waits for the database holds up no request", async () => {
    const [web, db] = [await w.machine(WEB), await w.asleep(await w.machine(DB))];
    w.world.holdBoots();
    w.machines.stop("shop", db);
    await w.reach(db, "stopped");
    await w.settled();
    const connection = tcp();
    await expect.poll(() => w.held()).toBe(1);
    expect((await http()).machineId).toBe(web);
    w.world.releaseBoots();
    expect(await connection).toMatchObject({ machineId: db, port: 5432 });
  });

  test("each sleeps by itself: neither is the other's excess", async () => {
    const [web, db] = [await w.machine(WEB), await w.machine(DB)];
    const connection = await tcp();
    await w.later(IDLE_S);
    await w.reach(web, "suspended");
    expect(w.state(db)).toBe("running");
    connection.release({});
    await w.later(IDLE_S);
    await w.reach(db, "suspended");
  });

  test("an app without HTTP services is reached over HTTP as before", async () => {
    const db = await w.machine({ ...DB, ports: [] });
    expect((await http()).machineId).toBe(db);
  });
});

test("a request that another app sends on goes only to machines that allow it, also if none is named", async () => {
  w.platform.apps.create("inner");
  const create = async (service: Partial<ServiceConfig>) => {
    const config = { ...SMALL, services: [{ ...WEB, ...service }] };
    const { record } = await w.machines.create("inner", { config });
    await w.machines.wait("inner", record.id, ["running"], { timeoutMs: 5000 });
    return record.id;
  };
  await create({});
  const open = await create({ replay_from: ["shop"] });
  await w.settled();
  const { broker } = w;
  const to = broker.replayTo({ app: "inner", machine: undefined, state: undefined }, "shop");
  for (let count = 0; count < 3; count += 1) {
    const head = request({ to });
    const lease =
      broker.leaseNow("inner", head) ?? (await broker.waitForLease("inner", head, AbortSignal.timeout(5000)));
    expect(lease.machineId).toBe(open);
  }
});
