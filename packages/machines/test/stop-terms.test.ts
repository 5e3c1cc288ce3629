/** A stop that says how: with another signal, or another patience, than the machine's own. */
import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { shopForEach } from "./shop.ts";

let requests = Promise.withResolvers<void>();
let finishing = 0;
const shop = shopForEach({
  wrap: (deps) => ({
    ...deps,
    finishRequests: () => {
      finishing += 1;
      return requests.promise;
    },
  }),
});

/** A machine whose app exits at SIGKILL only, and waits for as long as nothing else is said. Its requests have ended. */
async function deaf() {
  requests = Promise.withResolvers();
  requests.resolve();
  finishing = 0;
  const id = await shop.run({ stop_config: { signal: "SIGTERM", timeout: 300 } });
  const guest = shop.host.guest(id);
  if (guest === undefined) throw new Error("it does not run");
  guest.deaf = true;
  const asked = async (times: number) => {
    while (guest.asked.length < times) await tick();
    return guest.asked;
  };
  return { id, guest, asked };
}

test("the terms are of this stop only; what they leave out says the machine, and its history tells them", async () => {
  const { id, guest } = await deaf();
  guest.deaf = false;
  shop.machines.stop("shop", id, {}, { signal: "SIGINT" });
  await shop.reach(id, "stopped");
  expect(guest.asked).toEqual([{ signal: 2, graceMs: 300_000 }]);
  expect(shop.events(id, "stop")).toMatchObject([{ details: { signal: "SIGINT" } }]);

  await shop.start(id);
  const next = shop.host.guest(id);
  shop.machines.restart("shop", id, { timeout: 7 });
  await shop.reach(id, "running");
  expect(next?.asked).toEqual([{ signal: 15, graceMs: 7000 }]);
  expect(shop.events(id, "restart")).toMatchObject([{ details: { timeout: 7 } }]);

  const last = shop.host.guest(id);
  await shop.stop(id);
  expect(last?.asked).toEqual([{ signal: 15, graceMs: 300_000 }]);
});

test("a stop under way gives way to one with less time, and is one stop in the end; without terms, the first one counts", async () => {
  const { id, asked } = await deaf();
  shop.machines.restart("shop", id);
  await asked(1);
  shop.machines.stop("shop", id);
  shop.machines.stop("shop", id, {}, { timeout: 60 });
  expect(await asked(2)).toEqual([
    { signal: 15, graceMs: 300_000 },
    { signal: 15, graceMs: 60_000 },
  ]);
  expect(shop.record(id).state).toBe("stopping");
  shop.machines.stop("shop", id, {}, { signal: "SIGKILL" });
  await shop.reach(id, "stopped");
  expect((await asked(3))[2]).toEqual({ signal: 9, graceMs: 0 });
  expect(shop.events(id, "halted")).toHaveLength(1);
  expect(shop.events(id, "stop").map(({ from, to, details }) => [from, to, details])).toEqual([
    ["stopping", "stopping", { signal: "SIGKILL" }],
    ["stopping", "stopping", { timeout: 60 }],
    ["stopping", "stopping", {}],
  ]);
  // Only the first one gave them time.
  expect(finishing).toBe(1);
});

test("a stop that asks for more time, or the same, changes nothing: not the end, no second signal, no request that is cut off", async () => {
  const { id, guest, asked } = await deaf();
  requests = Promise.withResolvers();
  shop.machines.stop("shop", id, {}, { timeout: 60 });
  const insist = async () => {
    for (const terms of [
      { timeout: 60 },
      { timeout: 300 },
      { signal: "SIGTERM" },
      { signal: "SIGTERM", timeout: 61 },
    ]) {
      shop.machines.stop("shop", id, {}, terms);
      await tick();
    }
  };
  await insist();
  // Another signal is one to the app, once it gets any.
  shop.machines.stop("shop", id, {}, { signal: "SIGINT", timeout: 300 });
  await tick();
  expect(guest.asked).toEqual([]);
  shop.machines.stop("shop", id, {}, { signal: "SIGTERM" });
  requests.resolve();
  await asked(1);
  await insist();
  expect(guest.asked).toEqual([{ signal: 15, graceMs: 60_000 }]);
  expect(finishing).toBe(1);
  expect(shop.events(id, "stop").map(({ details }) => details)).toEqual([
    { signal: "SIGTERM" },
    { signal: "SIGINT", timeout: 300 },
    { timeout: 60 },
  ]);
  shop.machines.stop("shop", id, {}, { signal: "SIGINT", timeout: 300 });
  const { signal, graceMs = 0 } = (await asked(2))[1] ?? {};
  expect(signal).toBe(2);
  expect(graceMs).toBeLessThanOrEqual(60_000);
  shop.machines.stop("shop", id, {}, { timeout: 0 });
  await shop.reach(id, "stopped");
});

test("a guest that ignores everything is ended when the last of its time is over, although more is asked for", async () => {
  for (const terms of [{ timeout: 1 }, { signal: "SIGKILL" }]) {
    await shop.restart({ settings: { slowFactor: 0.001 } });
    const { id, guest, asked } = await deaf();
    guest.deafToAll = true;
    shop.machines.stop("shop", id);
    await asked(1);
    shop.machines.stop("shop", id, {}, terms);
    await asked(2);
    shop.machines.stop("shop", id, {}, { signal: "SIGWINCH", timeout: 300 });
    expect(await shop.reach(id, "stopped"), JSON.stringify(terms)).toBe("stopped");
  }
});

test("a restart that is told to hurry starts the machine again", async () => {
  const { id, asked } = await deaf();
  shop.machines.restart("shop", id);
  await asked(1);
  shop.machines.restart("shop", id, { timeout: 0 });
  await shop.reach(id, "running");
  expect(shop.events(id, "halted")).toHaveLength(1);
});

test("open requests get no more time than the app, and none with SIGKILL or from one who asks once more", async () => {
  for (const hurried of [[{ timeout: 0 }], [{ signal: "SIGKILL" }], [{}, { timeout: 0 }]]) {
    const { id, guest } = await deaf();
    requests = Promise.withResolvers();
    for (const terms of hurried) {
      shop.machines.stop("shop", id, {}, terms);
      await tick();
    }
    await shop.reach(id, "stopped");
    expect(guest.asked, JSON.stringify(hurried)).toHaveLength(1);
    requests.resolve();
  }
});

test("what is not a signal is refused, and stops nothing", async () => {
  const { id } = await deaf();
  for (const signal of ["SIGNOTHING", "toString"])
    for (const act of [
      () => shop.machines.stop("shop", id, {}, { signal }),
      () => shop.machines.restart("shop", id, { signal }),
    ])
      expect(act).toThrowError(expect.objectContaining({ code: "invalid_argument", details: { field: "signal" } }));
  expect(shop.record(id).state).toBe("running");
});

test("a destroy does not wait for a patient stop", async () => {
  const { id, guest, asked } = await deaf();
  shop.machines.stop("shop", id);
  await asked(1);
  shop.machines.destroy("shop", id, { force: true });
  await shop.reach(id, "destroyed");
  expect(guest.asked).toHaveLength(1);
});
