/**
 * @module-tag again
 */
// The connection dies between COMMIT and its answer. No row is lost or doubled, whether it was committed or not.
import { afterAll, describe, expect, test } from "vitest";
import { DatabaseUnavailableError } from "../../src/storage.ts";
import type { Fate } from "./cutter.ts";
import { addOrder, countNames, newSuppliers, openCuttable } from "./helpers.ts";
import { ask, startTestServer } from "./server.ts";

const server = await startTestServer();
afterAll(() => server.remove());

/** Shorter than in production, so that silence is noticed sooner; and longer than a busy host takes for a query. */
const settings = { queryTimeoutMs: 1500 };
const FATES: Fate[] = ["lost", "answer lost", "swallowed", "answer swallowed"];

describe.each(FATES)("COMMIT: %s", (fate) => {
  const arrives = fate.startsWith("answer");

  test("a batch is stored once, in one attempt if it was committed and in two if not", async () => {
    await using opened = await openCuttable(server, settings);
    const { storage, cutter, access } = opened;
    const rows = newSuppliers(3);
    const names = rows.map((row) => row.companyName);
    const before = cutter.commits;
    cutter.cutCommits(fate);
    const created = await storage.createSuppliers(rows);
    expect(cutter.commits - before).toBe(arrives ? 1 : 2);
    expect([...(await countNames(access, names)).values()]).toEqual([1, 1, 1]);
    const ids = created.map((row) => row.id);
    const stored = await ask(access, `SELECT id FROM suppliers WHERE "companyName" = ANY($1) ORDER BY id`, [names]);
    expect(stored.map((row) => row["id"])).toEqual(ids);
  });

  test("a deletion and a change are reported as done", async () => {
    await using opened = await openCuttable(server, settings);
    const { storage, cutter, access } = opened;
    const { orderId } = await addOrder(opened);
    cutter.cutCommits(fate);
    expect(await storage.deleteOrder(orderId)).toBe(true);
    expect(await ask(access, "SELECT 1 FROM orders UNION ALL SELECT 1 FROM order_details")).toEqual([]);
    const [{ id } = {}] = await ask(access, "SELECT id FROM suppliers");
    cutter.cutCommits(fate);
    expect(await storage.updateSupplier(id as number, { city: "Bergen" })).toMatchObject({ city: "Bergen" });
    expect(await ask(access, "SELECT city FROM suppliers")).toEqual([{ city: "Bergen" }]);
  });

  test("two lost answers in a row are settled without a third attempt", async () => {
    await using opened = await openCuttable(server, settings);
    const { storage, cutter, access } = opened;
    const rows = newSuppliers();
    const name = rows[0]?.companyName ?? "";
    const before = cutter.commits;
    cutter.cutCommits("lost", fate, "lost");
    const made = storage.createSuppliers(rows);
    if (arrives) await made;
    else await expect(made).rejects.toThrow(DatabaseUnavailableError);
    expect(cutter.commits - before).toBe(2);
    expect((await countNames(access, [name])).get(name) ?? 0).toBe(arrives ? 1 : 0);
  });
});

test.each(["lost", "answer lost"] satisfies Fate[])(
  "COMMIT %s and the server gone silent: says that the outcome is not known",
  async (fate) => {
    await using opened = await openCuttable(server, settings);
    const { storage, cutter, access } = opened;
    const rows = newSuppliers();
    const name = rows[0]?.companyName ?? "";
    await storage.check();
    cutter.freezeNew();
    cutter.cutCommits(fate);
    const started = performance.now();
    await expect(storage.createSuppliers(rows)).rejects.toThrow("not known whether it was saved");
    expect(performance.now() - started).toBeLessThan(6000);
    expect((await countNames(access, [name])).get(name) ?? 0).toBe(fate === "lost" ? 0 : 1);
    cutter.thaw();
    await storage.check();
  },
);

test("after a crash, another transaction that commits under the same id is not mistaken for ours", async () => {
  // Time for the crash and for the other transactions before the answer to COMMIT times out.
  await using opened = await openCuttable(server, settings);
  const { storage, cutter, access } = opened;
  const before = cutter.commits;
  const rows = newSuppliers();
  cutter.cutCommits("swallowed");
  const outcome = storage.createSuppliers(rows).then(
    () => 1,
    (error: unknown) => (error instanceof DatabaseUnavailableError ? 0 : error),
  );
  while (cutter.commits === before) await new Promise((resolve) => setImmediate(resolve));
  await server.restart("immediate");
  await ask(access, "CREATE PROCEDURE burn() LANGUAGE plpgsql AS 'BEGIN PERFORM pg_current_xact_id(); COMMIT; END'");
  for (let others = 0; others < 20; others++) await ask(access, "CALL burn()");
  const reported = await outcome;
  expect(
    (
      await countNames(
        access,
        rows.map((row) => row.companyName),
      )
    ).size,
  ).toBe(reported);
}, 30_000);

test("many writers lose nothing when every third COMMIT is cut one way or the other", async () => {
  await using opened = await openCuttable(server, settings);
  const { storage, cutter, access } = opened;
  const fates: Fate[] = ["lost", "answer lost"];
  const names: string[] = [];
  const refused: string[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let round = 0; round < 30; round++) {
        const rows = newSuppliers(2);
        names.push(...rows.map((row) => row.companyName));
        if (round % 3 === 0) cutter.cutCommits(fates[(writer + round) % 2] ?? "lost");
        // Two cuts may hit the same write, which then gets a 503.
        await storage.createSuppliers(rows).catch((error: unknown) => {
          if (!(error instanceof DatabaseUnavailableError)) throw error;
          refused.push(...rows.map((row) => row.companyName));
        });
      }
    }),
  );
  const counts = await countNames(access, names);
  const wrong = names.filter((name) => counts.get(name) !== 1 && !(refused.includes(name) && !counts.has(name)));
  expect(wrong).toEqual([]);
  expect(opened.faults.length).toBeGreaterThan(0);
});
