/** What only SQLite has: the file, its lock, its faults. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../src/sqlite/database.ts";
import { openSqliteStorage } from "../src/sqlite/index.ts";
import { DatabaseUnavailableError } from "../src/storage.ts";
import { openTestApp } from "./behaviour/world.ts";
import { openSqliteWorld, tempFolder } from "./sqlite-world.ts";

async function world() {
  const opened = await openSqliteWorld();
  onTestFinished(opened.dispose);
  return opened;
}

test("the file is durable, checked, and records its migrations", async () => {
  const { path } = await world();
  const client = await openDatabase(path);
  const pragma = (name: string) => client.pragma(name, { simple: true });
  expect(["journal_mode", "synchronous", "foreign_keys", "busy_timeout"].map(pragma)).toEqual(["wal", 2, 1, 1000]);
  expect(client.prepare("select count(*) from __drizzle_migrations").pluck().get()).toBe(1);
  client.close();
});

test("rows exist after reopening, and ids are never assigned twice", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "orders.db");
  const row = { companyName: "s", city: "x", country: "c" };
  const first = await openSqliteStorage({ path });
  const created = await first.createSuppliers([row, row]);
  await first.close();
  const beside = new Database(path);
  beside.exec("delete from suppliers where id = 2");
  beside.close();
  const second = await openSqliteStorage({ path });
  expect(await second.updateSupplier(created[0]?.id ?? 0, { country: "d" })).toEqual({ id: 1, ...row, country: "d" });
  expect((await second.createSuppliers([row]))[0]?.id).toBe(3);
  await second.close();
});

test("a failed deletion is rolled back completely and logged", async () => {
  const { storage, insertOrder, execute } = await world();
  const { call, logged, close } = await openTestApp(storage);
  onTestFinished(close);
  const [supplier] = await storage.createSuppliers([{ companyName: "s", country: "c" }]);
  const row = { name: "p", supplierId: supplier?.id ?? 0, unitPrice: "1.0000", unitsInStock: 1 };
  const [product] = await storage.createProducts([row]);
  const id = await insertOrder({ lines: [{ productId: product?.id ?? 0, quantity: 2 }] });
  await execute("create trigger no_delete before delete on orders begin select raise(abort, 'not today'); end");
  expect((await call("DELETE", `/orders/${id}`)).status).toBe(500);
  expect(logged).toMatchObject([{ level: 50, method: "DELETE" }]);
  expect((await storage.getOrder(id))?.totalQuantity).toBe(2);
});

test("a file that another process has locked is a 503 for writes, and reads still work", async () => {
  const { path, storage } = await world();
  const { call, close } = await openTestApp(storage);
  onTestFinished(close);
  const other = new Database(path);
  other.exec("begin immediate");
  expect(await call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).toMatchObject({ status: 503 });
  expect((await call("GET", "/health")).status).toBe(200);
  other.exec("rollback");
  other.close();
  expect((await call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).status).toBe(201);
});

test("several processes can start with a new file at once", { timeout: 30_000 }, async () => {
  await using folder = await tempFolder();
  const module = JSON.stringify(join(import.meta.dirname, "../src/sqlite/index.ts"));
  const script = `const { openSqliteStorage } = await import(${module});
    const storage = await openSqliteStorage({ path: ${JSON.stringify(join(folder.path, "orders.db"))} });
    await storage.check(); await storage.close();`;
  const start = () => promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
  await expect(Promise.all(Array.from({ length: 4 }, start))).resolves.toHaveLength(4);
});

test("a file that is not a database is neither opened nor changed", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "orders.db");
  await writeFile(path, "These are someone's notes, and long enough to be a header of a file.".repeat(20));
  await expect(openSqliteStorage({ path })).rejects.toThrow(/not a database/);
});

test("a closed storage reports it, and can be closed again", async () => {
  const { storage } = await world();
  await storage.close();
  await storage.close();
  await expect(storage.check()).rejects.toThrow(DatabaseUnavailableError);
});
