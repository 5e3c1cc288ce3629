/** What requests see of a machine that was started only for its snapshot. */
import { expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

const services = [{ internal_port: 8080, autostop: "suspend" as const, idle_timeout: 5 }];
const CHECKED = { ...SMALL, image: "app:2", services, checks: { web: { type: "tcp" as const, port: 8080 } } };

/** A machine that runs its new version, whose checks have not passed. */
async function prewarming(): Promise<string> {
  const id = await w.asleep(await w.machine());
  w.unhealthy.add(id);
  await w.machines.update("shop", id, CHECKED, { prewarm: "healthy" });
  await w.reach(id, "running");
  await w.settled();
  return id;
}

const prewarm = (id: string) => w.machines.get("shop", id).record.prewarm;

function healthy(id: string): void {
  w.unhealthy.delete(id);
  w.coordinator.healthChanged(id);
}

test("a request that needs it waits for its health, and gets it as it is", async () => {
  const id = await prewarming();
  const waiting = w.acquire();
  await expect.poll(() => w.held()).toBe(1);
  healthy(id);
  const lease = await waiting;
  expect(lease.machineId).toBe(id);
  w.checkPassed(id);
  await w.reach(id, "prewarmed");
  expect(prewarm(id)).toMatchObject({ status: "taken", reason: "a request came first" });
  lease.release({});
  await w.later(6);
  await w.reach(id, "suspended");
});

test("it counts for nothing while it is not needed: others take the requests, and it sleeps when it is ready", async () => {
  const id = await prewarming();
  const other = await w.machine();
  healthy(id);
  for (let count = 0; count < 3; count += 1) expect((await w.acquire()).machineId).toBe(other);
  await w.later(60);
  expect(w.state(id), "only its checks end a prewarm").toBe("running");
  w.checkPassed(id);
  await w.reach(id, "suspended");
  expect(prewarm(id)).toMatchObject({ status: "done" });
});

test("a start that comes while the proxies are asked takes it, and they have it back", async () => {
  const id = await prewarming();
  healthy(id);
  w.checkPassed(id);
  w.machines.start("shop", id);
  await w.reach(id, "prewarmed");
  await w.settled();
  expect(prewarm(id)).toMatchObject({ status: "taken", reason: "a start came first" });
  expect((await w.acquire()).machineId).toBe(id);
});
