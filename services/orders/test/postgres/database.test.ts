/**
 * @module-tag again
 */
// What only PostgreSQL has: its tables, their rules, the order of a batch. The suite tests what both variants share.
import { afterAll, expect, test } from "vitest";
import { openPostgresStorage } from "../../src/postgres/index.ts";
import { openPostgresSeeder } from "../../src/postgres/seeder.ts";
import { UnknownSupplierError } from "../../src/storage.ts";
import { addOrder, newSuppliers, openStorage } from "./helpers.ts";
import { ask, startTestServer } from "./server.ts";

const server = await startTestServer();
afterAll(() => server.remove());

test("concurrent starts create the tables once", async () => {
  const access = await server.newDatabase();
  const storages = await Promise.all(Array.from({ length: 4 }, () => openPostgresStorage(access)));
  await Promise.all(storages.map((storage) => storage.check()));
  await Promise.all(storages.map((storage) => storage.close()));
  expect(await ask(access, "SELECT id FROM drizzle.__drizzle_migrations")).toHaveLength(2);
});

test("a start without a database reports it", async () => {
  const access = { ...(await server.newDatabase()), port: 1 };
  await expect(openPostgresStorage(access)).rejects.toThrow("does not answer");
});

test("a batch of 1,000 is one transaction, and a refused one leaves nothing", async () => {
  await using opened = await openStorage(server);
  const created = await opened.storage.createSuppliers(newSuppliers(1000));
  const [{ writers } = {}] = await ask(
    opened.access,
    "SELECT count(DISTINCT xmin::text)::int AS writers FROM suppliers",
  );
  expect(writers).toBe(1);

  const product = { name: "Chai", supplierId: created[0]?.id ?? 0, unitPrice: "1.0000", unitsInStock: 1 };
  for (const supplierId of [999_999, 2 ** 31, 2 ** 40])
    await expect(opened.storage.createProducts([product, { ...product, supplierId }])).rejects.toMatchObject({
      name: UnknownSupplierError.name,
      rows: [{ index: 1, supplierId }],
    });
  expect(await ask(opened.access, "SELECT 1 FROM products")).toEqual([]);
  expect(opened.faults).toEqual([]);
});

test("a row with an id beyond the column's type does not exist", async () => {
  await using opened = await openStorage(server);
  const { storage } = opened;
  const none = [storage.getProduct(2 ** 31), storage.getOrder(2 ** 40), storage.updateSupplier(2 ** 31, { city: "x" })];
  expect(await Promise.all(none)).toEqual([undefined, undefined, undefined]);
  expect(await storage.deleteOrder(2 ** 31)).toBe(false);
  expect(await storage.findProducts({ name: "\0", offset: 0, limit: 20 })).toEqual({ items: [], total: 0 });
});

test("a search in many names uses the index", async () => {
  const access = await server.newDatabase();
  const seeder = await openPostgresSeeder(access);
  expect(await seeder.isEmpty()).toBe(true);
  await seeder.insert("suppliers", [{ id: 1, companyName: "One", city: null, country: "NO" }]);
  for (let start = 1; start <= 20_000; start += 1000)
    await seeder.insert(
      "products",
      Array.from({ length: 1000 }, (_, place) => {
        const id = start + place;
        return { id, name: `Ærfugl ${id * 7919}`, supplierId: 1, unitPrice: "2.5000", unitsInStock: 1 };
      }),
    );
  await seeder.commit();
  expect(await seeder.isEmpty()).toBe(false);
  await seeder.close();
  const storage = await openPostgresStorage(access);
  const { items, total } = await storage.findProducts({ name: "ÆRFUGL 7919", offset: 0, limit: 5 });
  expect(items[0]).toEqual({ id: 1, name: "Ærfugl 7919", unitPrice: "2.5000", unitsInStock: 1 });
  expect(total).toBeGreaterThan(0);
  expect(await storage.findProducts({ name: "", offset: 19_999, limit: 5 })).toMatchObject({
    total: 20_000,
    items: [{ id: 20_000 }],
  });
  expect(await storage.findProducts({ name: "", offset: 20_000, limit: 5 })).toEqual({ total: 20_000, items: [] });
  const plan = await ask(access, `EXPLAIN SELECT count(*) FROM products WHERE "foldedName" LIKE '%ærfugl 7919%'`);
  expect(JSON.stringify(plan)).toContain("products_foldedName_index");
  const [next] = await storage.createSuppliers(newSuppliers());
  expect(next?.id).toBe(2);
  await storage.close();
});

test("a seed that is not committed leaves nothing, and clearing takes everything", async () => {
  await using opened = await openStorage(server);
  await addOrder(opened);
  const abandoned = await openPostgresSeeder(opened.access);
  await abandoned.clear();
  await abandoned.close();
  expect(await ask(opened.access, "SELECT 1 FROM order_details")).toHaveLength(2);
  const seeder = await openPostgresSeeder(opened.access);
  await seeder.clear();
  await seeder.commit();
  await seeder.close();
  expect(await ask(opened.access, "SELECT 1 FROM suppliers")).toEqual([]);
});
