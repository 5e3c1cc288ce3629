/** The embedded variant: SQLite in one file, in this process. */
import { formatUnits, parsePrice } from "../decimal.ts";
import { fold } from "../fold.ts";
import { type NewProduct, type Product, StillReferencedError, type Storage, UnknownSupplierError } from "../storage.ts";
import { BROKEN_REFERENCE, codeOf, openDatabase, translate } from "./database.ts";
import { prepareReads } from "./reads.ts";
import { prepareWrites } from "./writes.ts";

/** Where the database is. */
export interface SqliteOptions {
  /** The file, made when it does not exist. */
  path: string;
}

const stillReferenced = () => new StillReferencedError("other rows refer to it");

/**
 * Opens the embedded database and migrates its tables.
 *
 * @example
 * const storage = await openSqliteStorage({ path: "./orders.db" });
 */
export async function openSqliteStorage({ path }: SqliteOptions): Promise<Storage> {
  const client = await openDatabase(path);
  const read = prepareReads(client);
  const statements = prepareWrites(client);
  const oneSupplier = client.prepare("SELECT id FROM suppliers LIMIT 1");

  /** SQLite answers synchronously. Turns what it throws into a rejection with one of the service's errors. */
  const run = async <T>(work: () => T, onBrokenReference?: () => Error): Promise<T> => {
    try {
      return work();
    } catch (error) {
      throw translate(error, client.open, onBrokenReference);
    }
  };

  const insertProducts = (batch: NewProduct[]): Product[] => {
    const stored = batch.map((row) => ({
      ...row,
      foldedName: fold(row.name),
      unitPrice: parsePrice(row.unitPrice),
    }));
    const rows = JSON.stringify(stored);
    try {
      const inserted = byId(statements.insertProducts.all(rows));
      return inserted.map((row) => ({ ...row, unitPrice: formatUnits(row.unitPrice) }));
    } catch (error) {
      if (codeOf(error) !== BROKEN_REFERENCE) throw error;
      throw new UnknownSupplierError(batch, new Set(statements.namedSuppliers.all(rows)), { cause: error });
    }
  };

  const removeOrder = client.transaction((id: number) => {
    statements.deleteLines.run(id);
    return statements.deleteOrder.run(id).changes > 0;
  });

  return {
    createSuppliers: (rows) => run(() => byId(statements.insertSuppliers.all(JSON.stringify(rows)))),
    createProducts: (rows) => run(() => insertProducts(rows)),
    getProduct: (id) => run(() => read.product(id)),
    findProducts: (wanted) => run(() => read.search(wanted)),
    getOrder: (id) => run(() => read.order(id)),
    updateSupplier: (id, { city, country }) =>
      run(() =>
        statements.updateSupplier.get({
          id,
          hasCity: city === undefined ? 0 : 1,
          city: city ?? null,
          country: country ?? null,
        }),
      ),
    deleteOrder: (id) => run(() => removeOrder(id), stillReferenced),
    check: async () => void (await run(() => oneSupplier.all())),
    close: async () => void client.close(),
  };
}

/** Sorts by id, which is the order of the batch, because SQLite returns inserted rows in no particular order. */
function byId<T extends { id: number }>(rows: T[]): T[] {
  return rows.sort((a, b) => a.id - b.id);
}
