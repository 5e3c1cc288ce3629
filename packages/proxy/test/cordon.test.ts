/** A cordoned machine: the proxy leaves it alone, until it is uncordoned. */
import { expect, test } from "vitest";
import {
  acquire,
  acquireAt,
  asleep,
  held,
  IDLE_S,
  later,
  machine,
  newProxy,
  reach,
  request,
  settled,
  state,
  useProxyWorld,
  w,
} from "./proxy-world.ts";

useProxyWorld();

const cordon = async (id: string, on = true) => {
  w.machines.cordon("shop", id, { on });
  await settled();
};

test("it gets no new requests, and finishes those that are open", async () => {
  const first = await machine();
  const second = await machine();
  const open = await acquire();
  expect(open.machineId).toBe(first);
  const left = [...w.left];
  await cordon(first);
  for (let count = 0; count < 5; count += 1) expect((await acquire()).machineId).toBe(second);
  expect(w.left, "connections to it stay").toEqual(left);
  open.release({});
  await cordon(first, false);
  expect((await acquire()).machineId).toBe(first);
});

test("a request waits rather than reach it, and reaches it once it is uncordoned", async () => {
  const id = await machine();
  await cordon(id);
  const waiting = acquire();
  await expect.poll(held).toBe(1);
  await cordon(id, false);
  expect((await waiting).machineId).toBe(id);
});

test("a request that waits in vain for it is told why", async () => {
  const id = await machine();
  await cordon(id);
  const proxy = newProxy({ holdTimeoutMs: 1 });
  w.proxies.push(proxy);
  await settled();
  await expect(acquireAt(proxy.broker, request(), AbortSignal.timeout(9e6))).rejects.toMatchObject({
    code: "wake_timeout",
    message: expect.stringMatching(new RegExp(`machine ${id}, which is cordoned: hibernaut machine uncordon ${id} `)),
  });
});

test("it is neither put to sleep when it is idle, nor woken by a request", async () => {
  const id = await machine();
  await cordon(id);
  await later(10 * IDLE_S);
  expect(state(id)).toBe("running");
  await asleep(id);
  await expect(acquire()).rejects.toMatchObject({
    status: 503,
    code: "cordoned",
    message: expect.stringContaining(`hibernaut machine uncordon ${id} --app shop`),
  });
  expect(state(id)).toBe("suspended");
  await cordon(id, false);
  const woken = acquire();
  await reach(id, "running");
  expect((await woken).machineId).toBe(id);
});

test("a new machine may be cordoned from the beginning, and the cordon outlives the platform's updates", async () => {
  const old = await machine();
  const { record } = await w.machines.create("shop", {
    cordoned: true,
    config: { image: "app:2", services: [{ internal_port: 8080 }], guest: { memory_mb: 128 } },
  });
  await reach(record.id, "running");
  await settled();
  const leases = [await acquire(), await acquire(), await acquire()];
  expect(leases.map(({ machineId }) => machineId)).toEqual([old, old, old]);
  await w.machines.update("shop", record.id, { ...record.config, image: "app:3" });
  await reach(record.id, "running");
  expect(w.machines.get("shop", record.id).record).toMatchObject({ cordoned: true, config: { image: "app:3" } });
});
