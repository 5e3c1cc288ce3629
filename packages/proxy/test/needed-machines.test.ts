/** Open requests, and what happens when their machine is suspended, stopped or found unhealthy. */
import { expect, test } from "vitest";
import { quietFor } from "../../platform/test/helpers/quiet.ts";
import { acquireAt, useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

test("a suspend by hand is cancelled while a request is open: the request needs the machine", async () => {
  const id = await w.machine();
  const lease = await w.acquire();
  w.machines.suspend("shop", id);
  await w.settled();
  await w.reach(id, "running");
  expect(w.machines.events("shop", id, 1)[0]?.type).toBe("capture_cancelled");
  lease.release({});
});

test("where connections survive, an upgraded one lets its machine sleep, and wakes it when the client speaks", async () => {
  await w.letConnectionsSurvive();
  const { broker } = await w.anotherProxy();
  const id = await w.machine();
  const lease = await acquireAt(broker);
  lease.upgraded?.();
  await w.asleep(id);
  expect(w.state(id)).toBe("suspended");
  lease.wanted?.();
  await w.reach(id, "running");
  lease.release({});
});

test("where connections do not survive, an upgraded one keeps its machine awake", async () => {
  const id = await w.machine();
  const lease = await w.acquire();
  lease.upgraded?.();
  w.machines.suspend("shop", id);
  await w.settled();
  await w.reach(id, "running");
  lease.release({});
});

test("a machine that is stopped or updated finishes its requests first, but not its tunnels", async () => {
  const id = await w.machine();
  const lease = await w.acquire();
  await w.settled();
  let finished = false;
  const finishing = w.connected.finished(id, 5000).then(() => (finished = true));
  await quietFor(100); // the proxies' loads are looked at every 30 ms
  expect(finished).toBe(false);
  lease.release({});
  await finishing;
  const endless = await w.acquire();
  endless.upgraded?.();
  await w.settled();
  await w.connected.finished(id, 60_000);
  endless.release({});
});

test("a machine that is held back finishes its requests, and others wait until it is given back", async () => {
  const id = await w.machine();
  const open = await w.acquire();
  await w.settled();
  const giveBack = w.connected.holdBack(id);
  await w.settled();
  let finished = false;
  const finishing = w.connected.finished(id, 60_000).then(() => (finished = true));
  const waiting = w.acquire();
  await w.settled();
  expect([finished, w.held(), w.state(id)]).toEqual([false, 1, "running"]);
  open.release({});
  await finishing;
  expect(w.held()).toBe(1);
  giveBack();
  expect((await waiting).machineId).toBe(id);
});

test("a machine whose checks fail gets no requests; they wait until its checks pass", async () => {
  const [ill, well] = [await w.machine(), await w.machine()];
  w.unhealthy.add(ill);
  w.coordinator.healthChanged(ill);
  await w.settled();
  for (let i = 0; i < 3; i += 1) expect((await w.acquire()).machineId).toBe(well);
  w.unhealthy.add(well);
  w.coordinator.healthChanged(well);
  await w.settled();
  const waiting = w.acquire();
  await w.settled();
  expect(w.held()).toBe(1);
  w.unhealthy.delete(ill);
  w.coordinator.healthChanged(ill);
  expect((await waiting).machineId).toBe(ill);
});
