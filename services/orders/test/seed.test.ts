import { createHash } from "node:crypto";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { parsePrice } from "../src/decimal.ts";
import { SEED_TABLES } from "../src/seed/contract.ts";
import { expectedRows, SIZES, seedData } from "../src/seed/data.ts";
import { showProgress } from "../src/seed/progress.ts";
import { NotEmptyError, seed } from "../src/seed/seed.ts";
import { openSqliteStorage } from "../src/sqlite/index.ts";
import { openSqliteSeeder } from "../src/sqlite/seeder.ts";
import { tempFolder } from "./sqlite-world.ts";

function counts(path: string): number[] {
  const db = new Database(path, { readonly: true });
  try {
    return SEED_TABLES.map((table) => db.prepare(`select count(*) from ${table}`).pluck().get() as number);
  } finally {
    db.close();
  }
}

test("the data is the same every time", () => {
  const hash = () =>
    createHash("sha256")
      .update(JSON.stringify([...seedData(SIZES.small)]))
      .digest("hex");
  expect(hash()).toBe(hash());
});

test("medium has about 370,000 rows, and the estimate is close", () => {
  let rows = 0;
  for (const batch of seedData(SIZES.medium)) rows += batch.rows.length;
  expect(rows).toBeGreaterThan(365_000);
  expect(rows).toBeLessThan(375_000);
  expect(Math.abs(expectedRows(SIZES.medium) / rows - 1)).toBeLessThan(0.01);
});

test("the data is plausible", () => {
  const days = new Map<number, string>();
  for (const { table, rows } of seedData(SIZES.small)) {
    expect(rows.length).toBeLessThanOrEqual(1000);
    for (const row of rows) {
      if (table === "products") expect(parsePrice((row as { unitPrice: string }).unitPrice)).toBeGreaterThan(0);
      if ("orderDate" in row) {
        expect(row.orderDate).toMatch(/^20\d\d-\d\d-\d\d$/);
        if (row.shippedDate !== null) expect(row.shippedDate > row.orderDate).toBe(true);
        days.set(row.id, row.orderDate);
      }
      if ("quantity" in row) expect(row.quantity).toBeGreaterThan(0);
    }
  }
  expect(new Set(days.values()).size).toBeGreaterThan(300);
});

test("the seed fills an empty database, refuses one with rows, and replaces them when forced", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "orders.db");
  const run = async (force: boolean) => {
    const seeder = await openSqliteSeeder({ path });
    try {
      return await seed(seeder, SIZES.small, { force });
    } finally {
      await seeder.close();
    }
  };
  const rows = await run(false);
  const filled = counts(path);
  expect(filled.slice(0, 3)).toEqual([30, 80, 800]);
  expect(filled.reduce((sum, count) => sum + count, 0)).toBe(rows);

  const storage = await openSqliteStorage({ path });
  const [next] = await storage.createSuppliers([{ companyName: "s", country: "c" }]);
  expect(next?.id).toBe(31);
  await storage.close();

  await expect(run(false)).rejects.toThrow(NotEmptyError);
  expect(await run(true)).toBe(rows);
  expect(counts(path)).toEqual(filled);
});

test("a seed that fails halfway leaves nothing behind", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "orders.db");
  const seeder = await openSqliteSeeder({ path });
  const onProgress = (done: number) => {
    if (done > 500) throw new Error("pulled the plug");
  };
  await expect(seed(seeder, SIZES.small, { onProgress })).rejects.toThrow("pulled the plug");
  await seeder.close();
  expect(counts(path)).toEqual([0, 0, 0, 0]);
});

test("progress is a bar on a terminal, and otherwise a few lines", () => {
  const shown = (isTTY: boolean) => {
    const written: string[] = [];
    const stream = { isTTY, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream;
    const progress = showProgress("Work", 100, stream);
    for (let done = 0; done <= 100; done++) progress.update(done);
    progress.end();
    return written;
  };
  expect(shown(false)).toEqual(["Work: 25%\n", "Work: 50%\n", "Work: 75%\n", "Work: 100%\n"]);
  const bar = shown(true);
  expect(bar.at(-2)).toContain(`${"█".repeat(30)} 100%`);
  expect(bar.at(-1)).toBe("\r\x1b[2K");
});
