/** Requests that would wake a machine for which the host has no room in memory. */
import { HibernautError } from "@hibernaut/domain/errors";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useProxyWorld, w } from "./proxy-world.ts";

useProxyWorld();

let full: Error | undefined;
beforeEach(() => {
  full = undefined;
  const start = w.machines.start.bind(w.machines);
  vi.spyOn(w.machines, "start").mockImplementation((...args) => {
    if (full !== undefined) throw full;
    return start(...args);
  });
});
afterEach(() => void vi.restoreAllMocks());

const hostFull = () => new HibernautError("host_full", "The host has no room in memory.", { retry_after_s: 5 });

test("a request is refused at once when no machine is about to give memory back, and the platform is not asked again for a second", async () => {
  const id = await w.asleep(await w.machine());
  full = hostFull();
  const refusal = { status: 503, code: "host_full", message: "The host has no room in memory.", retryAfterS: 5 };
  await expect(w.acquire()).rejects.toMatchObject(refusal);
  await expect(w.acquire()).rejects.toMatchObject(refusal);
  expect(w.machines.start).toHaveBeenCalledTimes(1);
  full = undefined;
  await expect(w.acquire()).rejects.toMatchObject(refusal);
  w.now += 1000;
  (await w.acquire()).release({});
  expect(w.state(id)).toBe("running");
});

test("a request is held while another machine falls asleep, and served when that has made room", async () => {
  const [id, other] = [await w.asleep(await w.machine()), await w.machine({}, { services: [] })];
  const captures = Promise.withResolvers<void>();
  w.world.host.hold.capture = captures.promise;
  w.machines.suspend("shop", other);
  full = hostFull();
  const lease = w.acquire();
  await w.settled();
  expect(w.held()).toBe(1);
  expect(w.state(other)).toBe("suspending");
  full = undefined;
  captures.resolve();
  await w.reach(other, "suspended");
  expect((await lease).machineId).toBe(id);
});

test("a request that was held in vain is refused", async () => {
  const [, other] = [await w.asleep(await w.machine()), await w.machine({}, { services: [] })];
  const captures = Promise.withResolvers<void>();
  w.world.host.hold.capture = captures.promise;
  w.machines.suspend("shop", other);
  full = hostFull();
  const ended = w.acquire().catch((error: unknown) => error);
  await w.settled();
  captures.resolve();
  expect(await ended).toMatchObject({ status: 503, code: "host_full" });
});

test("a wake that fails for another reason is reported, too, instead of being tried without limit", async () => {
  await w.asleep(await w.machine());
  full = new HibernautError("unavailable", "The database cannot be written.");
  await expect(w.acquire()).rejects.toMatchObject({
    status: 503,
    code: "machine_failed",
    message: expect.stringContaining("The database cannot be written."),
  });
});
