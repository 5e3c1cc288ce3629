/** The orders service's data in PostgreSQL 15 or newer. */
import type { PoolClient } from "pg";
import { DatabaseUnavailableError, StillReferencedError, type Storage, UnknownSupplierError } from "../storage.ts";
import { Connections } from "./connections.ts";
import { migrateToLatest } from "./migrate.ts";
import { existingSuppliers, findOrder, findProduct, LARGEST_ID, searchProducts } from "./reads.ts";
import { retryOnce } from "./retry.ts";
import type { PostgresSettings } from "./settings.ts";
import { write } from "./transaction.ts";
import { changeSupplier, insertProducts, insertSuppliers, isForeignKeyViolation, removeOrder } from "./writes.ts";

export type { PostgresSettings } from "./settings.ts";

/**
 * Migrates the tables and opens the storage. Rejects with a {@link DatabaseUnavailableError} when the database
 * does not answer.
 *
 * @example
 * const storage = await openPostgresStorage({ host: "db", port: 5432, user: "orders", password, database: "orders" });
 */
export async function openPostgresStorage(settings: PostgresSettings): Promise<Storage> {
  await retryOnce(() => migrateToLatest(settings));
  const connections = new Connections(settings);
  const read = <T>(work: (client: PoolClient) => Promise<T>) => retryOnce(() => connections.use(work));

  return {
    createSuppliers: (rows) => write(connections, (client) => insertSuppliers(client, rows)),

    async createProducts(rows) {
      try {
        return await write(connections, (client) => insertProducts(client, rows));
      } catch (error) {
        if (!isForeignKeyViolation(error) || error instanceof DatabaseUnavailableError) throw error;
        const named = rows.map(({ supplierId }) => supplierId);
        const existing = await read((client) => existingSuppliers(client, named));
        throw new UnknownSupplierError(rows, existing, { cause: error });
      }
    },

    async getProduct(id) {
      if (id > LARGEST_ID) return undefined;
      return read((client) => findProduct(client, id));
    },

    findProducts: (search) => read((client) => searchProducts(client, search)),

    async getOrder(id) {
      if (id > LARGEST_ID) return undefined;
      return read((client) => findOrder(client, id));
    },

    async updateSupplier(id, changes) {
      if (id > LARGEST_ID) return undefined;
      return write(connections, (client) => changeSupplier(client, id, changes));
    },

    async deleteOrder(id) {
      if (id > LARGEST_ID) return false;
      try {
        return await write(connections, (client) => removeOrder(client, id));
      } catch (error) {
        if (!isForeignKeyViolation(error) || error instanceof DatabaseUnavailableError) throw error;
        throw new StillReferencedError(error.detail ?? error.message, { cause: error });
      }
    },

    async check() {
      await read((client) => client.query("SELECT 1"));
    },

    close: () => connections.close(),
  };
}
