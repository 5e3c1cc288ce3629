/** `npm run orders:seed -- --size small|medium [--force]` */
import { parseArgs } from "node:util";
import { describeDatabase, openSeeder } from "../database.ts";
import { readSettings, SettingError } from "../settings.ts";
import { expectedRows, SIZES } from "./data.ts";
import { showProgress } from "./progress.ts";
import { NotEmptyError, seed } from "./seed.ts";

const USAGE = `Fills the orders database with sample data.

  --size small|medium   910 rows and some 2,400 order lines, or about 370,000 rows (default: small)
  --force               remove all rows that are there first
  --help

The database is the one that the service would use: DB_HOST and its like, or ORDERS_SQLITE_PATH.
`;

class UsageError extends Error {}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: { size: { type: "string", default: "small" }, force: { type: "boolean" }, help: { type: "boolean" } },
    });
    return values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

async function main(): Promise<void> {
  const { size: name, force = false, help } = readArguments();
  if (help) return void process.stdout.write(USAGE);
  if (name !== "small" && name !== "medium") throw new UsageError("--size must be small or medium.");
  const size = SIZES[name];
  const settings = readSettings(process.env);
  const started = Date.now();
  const seeder = await openSeeder(settings);
  const progress = showProgress(`Seeding ${describeDatabase(settings)}`, expectedRows(size), process.stderr);
  let rows: number;
  try {
    rows = await seed(seeder, size, { force, onProgress: progress.update });
  } finally {
    progress.end();
    await seeder.close();
  }
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${rows} rows in ${describeDatabase(settings)}, ${seconds} s.\n`);
}

try {
  await main();
} catch (error) {
  const refused = error instanceof SettingError || error instanceof UsageError;
  const hint =
    error instanceof NotEmptyError ? "The database already has rows. Use --force to remove them first." : undefined;
  const text = hint ?? (refused ? error.message : `Seeding failed: ${String(error)}`);
  process.stderr.write(`${text}\n`);
  process.exitCode = refused ? 2 : 1;
}
