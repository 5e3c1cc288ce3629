/** A cordoned machine: the proxy leaves it alone, until it is uncordoned. */
import { expect, test } from "vitest";
import { acquireAt, IDLE_S, request, useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

const cordon = async (id: string, on = true) => {
  w.machines.cordon("shop", id, { on });
  await w.settled();
};

test("it gets no new requests, and finishes those that are open", async () => {
  const first = await w.machine();
  const second = await w.machine();
  const open = await w.acquire();
  expect(open.machineId).toBe(first);
  const left = [...w.left];
  await cordon(first);
  for (let count = 0; count < 5; count += 1) expect((await w.acquire()).machineId).toBe(second);
  expect(w.left, "connections to it stay").toEqual(left);
  open.release({});
  await cordon(first, false);
  expect((await w.acquire()).machineId).toBe(first);
});

test("a request waits rather than reach it, and reaches it once it is uncordoned", async () => {
  const id = await w.machine();
  await cordon(id);
  const waiting = w.acquire();
  await expect.poll(() => w.held()).toBe(1);
  await cordon(id, false);
  expect((await waiting).machineId).toBe(id);
});

test("a request that waits in vain for it is told why", async () => {
  const id = await w.machine();
  await cordon(id);
  const proxy = await w.anotherProxy({ holdTimeoutMs: 1 });
  await expect(acquireAt(proxy.broker, request(), AbortSignal.timeout(9e6))).rejects.toMatchObject({
    code: "wake_timeout",
    message: expect.stringMatching(new RegExp(`machine ${id}, which is cordoned: hibernaut machine uncordon ${id} `)),
  });
});

test("it is neither put to sleep when it is idle, nor woken by a request", async () => {
  const id = await w.machine();
  await cordon(id);
  await w.later(10 * IDLE_S);
  expect(w.state(id)).toBe("running");
  await w.asleep(id);
  await expect(w.acquire()).rejects.toMatchObject({
    status: 503,
    code: "cordoned",
    message: expect.stringContaining(`hibernaut machine uncordon ${id} --app shop`),
  });
  expect(w.state(id)).toBe("suspended");
  await cordon(id, false);
  const woken = w.acquire();
  await w.reach(id, "running");
  expect((await woken).machineId).toBe(id);
});

test("a new machine may be cordoned from the beginning, and the cordon outlives the platform's updates", async () => {
  const old = await w.machine();
  const { record } = await w.machines.create("shop", {
    cordoned: true,
    config: { image: "app:2", services: [{ internal_port: 8080 }], guest: { memory_mb: 128 } },
  });
  await w.reach(record.id, "running");
  await w.settled();
  const leases = [await w.acquire(), await w.acquire(), await w.acquire()];
  expect(leases.map(({ machineId }) => machineId)).toEqual([old, old, old]);
  await w.machines.update("shop", record.id, { ...record.config, image: "app:3" });
  await w.reach(record.id, "running");
  expect(w.machines.get("shop", record.id).record).toMatchObject({ cordoned: true, config: { image: "app:3" } });
});
