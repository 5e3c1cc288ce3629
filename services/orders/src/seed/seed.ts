/** Fills a database with the sample data. */
import type { Seeder } from "./contract.ts";
import { expectedRows, type SeedSize, seedData } from "./data.ts";

/** The database already has rows, and `force` is not set. */
export class NotEmptyError extends Error {
  override name = "NotEmptyError";
}

interface SeedOptions {
  /** Remove existing rows first. */
  force?: boolean;
  /** Called after each batch. */
  onProgress?(done: number, total: number): void;
}

/** Fills the database, completely or not at all. Returns the number of rows. The caller closes the seeder. */
export async function seed(seeder: Seeder, size: SeedSize, options: SeedOptions = {}): Promise<number> {
  if (!(await seeder.isEmpty())) {
    if (!options.force) throw new NotEmptyError("the database is not empty");
    await seeder.clear();
  }
  const total = expectedRows(size);
  let done = 0;
  for (const { table, rows } of seedData(size)) {
    await seeder.insert(table, rows);
    done += rows.length;
    options.onProgress?.(done, total);
  }
  await seeder.commit();
  return done;
}
