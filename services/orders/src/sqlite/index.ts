/** The embedded variant: SQLite in one file, in this process. */
import { formatUnits, parsePrice } from "../decimal.ts";
import { fold } from "../fold.ts";
import { StillReferencedError, type Storage, UnknownSupplierError } from "../storage.ts";
import { openDatabase, translate } from "./database.ts";
import { PRICE_PART, prepareQueries } from "./queries.ts";

/** Where the database is. */
export interface SqliteOptions {
  /** The file; made when absent. */
  path: string;
}

const unknownSupplier = () => new UnknownSupplierError("a product names a supplier that does not exist");
const stillReferenced = () => new StillReferencedError("other rows refer to it");

/**
 * Opens the embedded database and brings its tables up to date.
 *
 * @example
 * const storage = await openSqliteStorage({ path: "./orders.db" });
 */
export async function openSqliteStorage({ path }: SqliteOptions): Promise<Storage> {
  const database = await openDatabase(path);
  const { client } = database;
  const query = prepareQueries(database);

  /** SQLite answers at once; what it throws becomes a rejection that the service knows. */
  const run = async <T>(work: () => T, onBrokenReference?: () => Error): Promise<T> => {
    try {
      return work();
    } catch (error) {
      throw translate(error, client.open, onBrokenReference);
    }
  };

  // One view of the table for page and total, also while another process writes.
  const search = client.transaction((name: string, page: { offset: number; limit: number }) => {
    if (name === "") return { items: query.allProducts.all(page), total: query.countAll.get()?.total ?? 0 };
    const needle = fold(name);
    // Counting reads a narrow index; where nothing is left for the page, the table is not read at all.
    const total = query.countMatching.get({ needle })?.total ?? 0;
    return { items: total > page.offset ? query.matchingProducts.all({ needle, ...page }) : [], total };
  });

  const removeOrder = client.transaction((id: number) => {
    query.deleteLines.run({ id });
    return query.deleteOrder.run({ id }).changes > 0;
  });

  return {
    createSuppliers: (rows) => run(() => byId(query.insertSuppliers.all({ rows: JSON.stringify(rows) }))),
    createProducts: (rows) => {
      const stored = rows.map((row) => ({
        ...row,
        foldedName: fold(row.name),
        unitPrice: parsePrice(row.unitPrice),
      }));
      return run(() => byId(query.insertProducts.all({ rows: JSON.stringify(stored) })), unknownSupplier);
    },
    getProduct: (id) => run(() => query.product.get({ id })),
    findProducts: ({ name, offset, limit }) => run(() => search(name, { offset, limit })),
    getOrder: (id) =>
      run(() => {
        const found = query.order.get({ id });
        if (!found) return undefined;
        const { high, low, ...order } = found;
        return { ...order, totalPrice: formatUnits(BigInt(high) * BigInt(PRICE_PART) + BigInt(low)) };
      }),
    updateSupplier: (id, { city, country }) =>
      run(() =>
        query.updateSupplier.get({
          id,
          hasCity: city === undefined ? 0 : 1,
          city: city ?? null,
          country: country ?? null,
        }),
      ),
    deleteOrder: (id) => run(() => removeOrder(id), stillReferenced),
    check: async () => void (await run(() => query.check.all())),
    close: async () => void client.close(),
  };
}

/** Ids were given in the order of the batch; SQLite promises no order for what an insert returns. */
function byId<T extends { id: number }>(rows: T[]): T[] {
  return rows.sort((a, b) => a.id - b.id);
}
