/** Fills a database with the sample data. */
import type { Seeder } from "./contract.ts";
import { expectedRows, type SeedSize, seedData } from "./data.ts";

/** The database has rows already, and nobody said that they may go. */
export class NotEmptyError extends Error {
  override name = "NotEmptyError";
}

/** How to fill. */
interface SeedOptions {
  /** Remove what is there first. */
  force?: boolean;
  /** Called after each batch. */
  onProgress?(done: number, total: number): void;
}

/** Fills the database, all or nothing; resolves to the number of rows. The caller closes the seeder. */
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
