/**
 * @module-tag again
 */
// Connections that die, or only seem alive, between requests and during them.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, expect, test, vi } from "vitest";
import { DatabaseUnavailableError } from "../../src/storage.ts";
import { addOrder, countNames, newSuppliers, openCuttable, openStorage } from "./helpers.ts";
import { type Access, ask, startTestServer, terminateAll } from "./server.ts";

const server = await startTestServer();
afterAll(() => server.remove());

const all = { name: "", offset: 0, limit: 20 };

test("every connection terminated between requests, again and again", async () => {
  await using opened = await openStorage(server);
  const { storage, access } = opened;
  const { orderId, productIds } = await addOrder(opened);
  const names: string[] = [];
  for (let round = 0; round < 10; round++) {
    // Fills the pool.
    await Promise.all(Array.from({ length: 12 }, () => storage.findProducts(all)));
    expect(await terminateAll(access)).toBeGreaterThan(1);
    if (round % 2 === 0) await sleep(20); // with the good-bye heard, and without
    const rows = newSuppliers();
    names.push(rows[0]?.companyName ?? "");
    const replies = await Promise.all([
      storage.createSuppliers(rows),
      storage.getProduct(productIds[0] ?? 0),
      storage.getOrder(orderId),
      ...Array.from({ length: 12 }, () => storage.findProducts(all)),
    ]);
    expect(replies.every(Boolean)).toBe(true);
  }
  expect([...(await countNames(access, names)).values()]).toEqual(names.map(() => 1));
});

test("connections reset by the network between requests", async () => {
  await using opened = await openCuttable(server);
  const { storage, cutter } = opened;
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 12 }, () => storage.check()));
    cutter.reset();
    await Promise.all(Array.from({ length: 12 }, () => storage.check()));
  }
});

/** Holds a lock in a session that the tests do not terminate. */
async function holdLock(access: Access, statement: string) {
  const holder = new pg.Client({ ...access, application_name: "holder" });
  holder.on("error", () => {});
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query(statement);
  return { release: () => holder.end() };
}

/** Terminates the sessions that wait for a lock, once there are `count` of them. */
async function terminateWaiting(access: Access, count: number): Promise<void> {
  const waiting = `FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'orders' AND wait_event_type = 'Lock'`;
  await vi.waitFor(async () => expect(await ask(access, `SELECT 1 ${waiting}`)).toHaveLength(count));
  await ask(access, `SELECT pg_terminate_backend(pid, 5000) ${waiting}`);
}

test("terminated during a read and during a write", async () => {
  await using opened = await openStorage(server);
  const { storage, access } = opened;
  const { orderId } = await addOrder(opened);
  const lock = await holdLock(access, "LOCK TABLE orders, suppliers IN ACCESS EXCLUSIVE MODE");
  const rows = newSuppliers(2);
  const running = [storage.getOrder(orderId), storage.createSuppliers(rows), storage.deleteOrder(orderId + 1000)];
  await terminateWaiting(access, 3);
  await lock.release();
  expect(await Promise.all(running)).toMatchObject([{ totalProducts: 2 }, [{}, {}], false]);
  const counts = await countNames(
    access,
    rows.map((row) => row.companyName),
  );
  expect([...counts.values()]).toEqual([1, 1]);
});

test("connections terminated twice during one query cause the documented error, without a third attempt", async () => {
  await using opened = await openStorage(server);
  const { storage, access } = opened;
  const { orderId } = await addOrder(opened);
  const lock = await holdLock(access, "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE");
  const reading = storage.getOrder(orderId);
  reading.catch(() => {});
  await terminateWaiting(access, 1);
  await terminateWaiting(access, 1);
  await expect(reading).rejects.toThrow(DatabaseUnavailableError);
  await lock.release();
  expect(await storage.getOrder(orderId)).toBeDefined();
});

test("a statement that waits too long for a lock is ended by the server, tried once more, and then fails", async () => {
  await using opened = await openStorage(server, { queryTimeoutMs: 400 });
  const { storage, access } = opened;
  const { orderId } = await addOrder(opened);
  const lock = await holdLock(access, "SELECT * FROM orders FOR UPDATE");
  const started = performance.now();
  await expect(storage.deleteOrder(orderId)).rejects.toMatchObject({ cause: { code: "57014" } });
  expect(performance.now() - started).toBeLessThan(3000);
  await lock.release();
  expect(await storage.deleteOrder(orderId)).toBe(true);
});

/** The clocks after a sleep of the machine: the time of day moved on, the steady clock did not. */
function clocksThatSleep() {
  let slept = 0;
  let idle = 0;
  return {
    clocks: { wall: () => Date.now() + slept + idle, steady: () => performance.now() + idle },
    sleep: (ms: number) => void (slept += ms),
    /** Both clocks moved on while the process was stopped. */
    stop: (ms: number) => void (idle += ms),
  };
}

test("black-holed connections are not even tried after a sleep", async () => {
  const { clocks, sleep: sleepFor } = clocksThatSleep();
  await using opened = await openCuttable(server, { clocks });
  const { storage, cutter } = opened;
  await Promise.all(Array.from({ length: 12 }, () => storage.check()));
  cutter.freeze();
  sleepFor(60_000);
  const started = performance.now();
  await Promise.all(Array.from({ length: 12 }, () => storage.check()));
  expect(performance.now() - started).toBeLessThan(1500);
  expect(opened.faults).toMatchObject([{ message: expect.stringContaining("clock jumped") }]);
});

test("black-holed connections cost only a short proof after a long idle time", async () => {
  const { clocks, stop } = clocksThatSleep();
  await using opened = await openCuttable(server, { clocks });
  const { storage, cutter } = opened;
  await Promise.all(Array.from({ length: 12 }, () => storage.check()));
  cutter.freeze();
  stop(60_000);
  const started = performance.now();
  await Promise.all(Array.from({ length: 12 }, () => storage.check()));
  const took = performance.now() - started;
  expect(took).toBeGreaterThan(400);
  expect(took).toBeLessThan(1900);
});

test("an idle time is not a fault while the connections are alive", async () => {
  const { clocks, stop } = clocksThatSleep();
  await using opened = await openCuttable(server, { clocks });
  await opened.storage.check();
  const { accepted } = opened.cutter;
  stop(10_000);
  await opened.storage.check();
  expect([opened.faults.length, opened.cutter.accepted]).toEqual([0, accepted]);
});

test("undetected black-holed connections cost one query timeout, also for requests in the queue", async () => {
  await using opened = await openCuttable(server);
  const { storage, cutter, access } = opened;
  await Promise.all(Array.from({ length: 12 }, () => storage.check()));
  cutter.freeze();
  const rows = newSuppliers();
  const started = performance.now();
  await Promise.all([storage.createSuppliers(rows), ...Array.from({ length: 30 }, () => storage.findProducts(all))]);
  const took = performance.now() - started;
  expect(took).toBeGreaterThan(1900);
  expect(took).toBeLessThan(3900);
  expect([...(await countNames(access, [rows[0]?.companyName ?? ""])).values()]).toEqual([1]);
});

test("a write whose answer was lost does not wait for the locks it left behind", async () => {
  await using opened = await openCuttable(server, { queryTimeoutMs: 500 });
  const { storage, cutter } = opened;
  const [supplier] = await storage.createSuppliers(newSuppliers());
  cutter.cutCommits("swallowed");
  const started = performance.now();
  expect(await storage.updateSupplier(supplier?.id ?? 0, { city: "Oslo" })).toMatchObject({ city: "Oslo" });
  expect(performance.now() - started).toBeLessThan(3000);
});

test("a database that cannot be reached causes the documented error within the limits", async () => {
  await using opened = await openCuttable(server, { queryTimeoutMs: 500 });
  const { storage, cutter } = opened;
  cutter.freezeNew();
  cutter.freeze();
  const started = performance.now();
  await expect(storage.check()).rejects.toThrow(DatabaseUnavailableError);
  expect(performance.now() - started).toBeLessThan(3000);
  cutter.thaw();
  await storage.check();
});

test("too many requests at once wait, and the wait does not count as a fault of the connections", async () => {
  await using opened = await openStorage(server, { poolSize: 2 });
  const found = await Promise.all(Array.from({ length: 200 }, () => opened.storage.findProducts(all)));
  expect(found).toHaveLength(200);
  expect(opened.faults).toEqual([]);
});

test("a closed storage leaves no session behind and refuses requests", async () => {
  const { storage, access } = await openStorage(server);
  await Promise.all(Array.from({ length: 12 }, () => storage.check()));
  await storage.close();
  await vi.waitFor(async () => {
    expect(
      await ask(
        access,
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'orders' AND datname = current_database()",
      ),
    ).toEqual([]);
  });
  await expect(storage.check()).rejects.toThrow(DatabaseUnavailableError);
});
