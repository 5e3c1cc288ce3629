/**
 * @module-tag again
 */
// PostgreSQL stops and starts again under load.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { DatabaseUnavailableError } from "../../src/storage.ts";
import { addOrder, countNames, newSuppliers, openStorage } from "./helpers.ts";
import { startTestServer } from "./server.ts";

const server = await startTestServer();
afterAll(() => server.remove());

const WRITERS = 6;
const READERS = 4;
/** Rows and reads between two disturbances, so that each meets the load in full swing. */
const MORE = 30;

test.each([
  { how: "fast", rounds: 4 },
  { how: "immediate", rounds: 4 },
] as const)(
  "$how, $rounds times: only the documented error, no row lost, none doubled",
  async ({ how, rounds }) => {
    await using opened = await openStorage(server);
    const { storage, access } = opened;
    const { orderId } = await addOrder(opened);
    const created: string[] = [];
    const unavailable: string[] = [];
    const others: unknown[] = [];
    let reads = 0;
    const enough = new AbortController();
    /** Even while the server is up. Increases when it stops and when it is back. */
    let turn = 0;
    const note = (error: unknown, names: string[], started: number) => {
      const upAllTheTime = started === turn && turn % 2 === 0;
      if (error instanceof DatabaseUnavailableError && !upAllTheTime) unavailable.push(...names);
      else others.push(error);
      return sleep(5);
    };
    const write = async () => {
      while (!enough.signal.aborted) {
        const rows = newSuppliers(3);
        const names = rows.map((row) => row.companyName);
        const started = turn;
        await storage.createSuppliers(rows).then(
          (suppliers) => void created.push(...suppliers.map((supplier) => supplier.companyName)),
          (error: unknown) => note(error, names, started),
        );
      }
    };
    const read = async () => {
      while (!enough.signal.aborted) {
        const started = turn;
        await storage.getOrder(orderId).then(
          (order) => void (reads += order?.totalProducts === 2 ? 1 : 0),
          (error: unknown) => note(error, [], started),
        );
      }
    };
    const load = [...Array.from({ length: WRITERS }, write), ...Array.from({ length: READERS }, read)];
    const more = async () => {
      const [rows, orders] = [created.length, reads];
      await expect.poll(() => created.length, { timeout: 20_000, interval: 10 }).toBeGreaterThan(rows + MORE);
      await expect.poll(() => reads, { timeout: 20_000, interval: 10 }).toBeGreaterThan(orders + MORE);
    };
    for (let round = 0; round < rounds; round++) {
      await more();
      turn++;
      await server.stop(how);
      // It is back at once, or only after writers were refused.
      const refused = unavailable.length;
      if (round % 2 === 1)
        await expect.poll(() => unavailable.length, { timeout: 20_000, interval: 10 }).toBeGreaterThan(refused);
      await server.start();
      turn++;
    }
    await more();
    enough.abort();
    await Promise.all(load);

    expect(others).toEqual([]);
    const counts = await countNames(access, [...created, ...unavailable]);
    expect(created.filter((name) => counts.get(name) !== 1)).toEqual([]);
    expect(unavailable.filter((name) => (counts.get(name) ?? 0) > 1)).toEqual([]);
    console.info(`${how}: ${created.length} rows, ${reads} reads, ${unavailable.length} rows refused`);
  },
  60_000,
);
