/** Open requests, and what happens when their machine is suspended, stopped or found unhealthy. */
import { expect, test } from "vitest";
import { quietFor } from "../../platform/test/helpers/quiet.ts";
import {
  acquire,
  acquireAt,
  anotherProxy,
  asleep,
  held,
  machine,
  reach,
  replaceCoordinator,
  settled,
  state,
  useProxyWorld,
  w,
} from "./proxy-world.ts";

useProxyWorld();

test("a suspend by hand is cancelled while a request is open: the request needs the machine", async () => {
  const id = await machine();
  const lease = await acquire();
  w.machines.suspend("shop", id);
  await settled();
  await reach(id, "running");
  expect(w.machines.events("shop", id, 1)[0]?.type).toBe("capture_cancelled");
  lease.release({});
});

test("where connections survive, an upgraded one lets its machine sleep, and wakes it when the client speaks", async () => {
  await replaceCoordinator({ connectionsSurvive: true });
  const { broker } = await anotherProxy();
  const id = await machine();
  const lease = await acquireAt(broker);
  lease.upgraded?.();
  await asleep(id);
  expect(state(id)).toBe("suspended");
  lease.wanted?.();
  await reach(id, "running");
  lease.release({});
});

test("where connections do not survive, an upgraded one keeps its machine awake", async () => {
  const id = await machine();
  const lease = await acquire();
  lease.upgraded?.();
  w.machines.suspend("shop", id);
  await settled();
  await reach(id, "running");
  lease.release({});
});

test("a machine that is stopped or updated finishes its requests first, but not its tunnels", async () => {
  const id = await machine();
  const lease = await acquire();
  await settled();
  let finished = false;
  const finishing = w.connected.finished(id, 5000).then(() => (finished = true));
  await quietFor(100); // the proxies' loads are looked at every 30 ms
  expect(finished).toBe(false);
  lease.release({});
  await finishing;
  const endless = await acquire();
  endless.upgraded?.();
  await settled();
  await w.connected.finished(id, 60_000);
  endless.release({});
});

test("a machine that is held back finishes its requests, and others wait until it is given back", async () => {
  const id = await machine();
  const open = await acquire();
  await settled();
  const giveBack = w.connected.holdBack(id);
  await settled();
  let finished = false;
  const finishing = w.connected.finished(id, 60_000).then(() => (finished = true));
  const waiting = acquire();
  await settled();
  expect([finished, held(), state(id)]).toEqual([false, 1, "running"]);
  open.release({});
  await finishing;
  expect(held()).toBe(1);
  giveBack();
  expect((await waiting).machineId).toBe(id);
});

test("a machine whose checks fail gets no requests; they wait until its checks pass", async () => {
  const [ill, well] = [await machine(), await machine()];
  w.unhealthy.add(ill);
  w.coordinator.healthChanged(ill);
  await settled();
  for (let i = 0; i < 3; i += 1) expect((await acquire()).machineId).toBe(well);
  w.unhealthy.add(well);
  w.coordinator.healthChanged(well);
  await settled();
  const waiting = acquire();
  await settled();
  expect(held()).toBe(1);
  w.unhealthy.delete(ill);
  w.coordinator.healthChanged(ill);
  expect((await waiting).machineId).toBe(ill);
});
