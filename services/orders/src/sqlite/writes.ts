/** The statements that write, prepared once, because preparing takes many times as long as running. */
import type { Database } from "better-sqlite3";
import type { Product, Supplier } from "../storage.ts";

/** A product as SQLite has it: its price is an integer of ten-thousandths. */
export type ProductRow = Omit<Product, "unitPrice"> & { unitPrice: number };

interface Change {
  id: number;
  hasCity: 0 | 1;
  city: string | null;
  country: string | null;
}

/** Prepares the statements on a database. Rows are passed as one JSON array: a single parameter for any number of rows. */
export function prepareWrites(client: Database) {
  return {
    insertSuppliers: client.prepare<[rows: string], Supplier>(`
      INSERT INTO suppliers ("companyName", city, country)
      SELECT value ->> 'companyName', value ->> 'city', value ->> 'country' FROM json_each(?) ORDER BY key
      RETURNING id, "companyName", city, country`),
    insertProducts: client.prepare<[rows: string], ProductRow>(`
      INSERT INTO products (name, "foldedName", "supplierId", "unitPrice", "unitsInStock")
      SELECT value ->> 'name', value ->> 'foldedName', value ->> 'supplierId', value ->> 'unitPrice',
        value ->> 'unitsInStock' FROM json_each(?) ORDER BY key
      RETURNING id, name, "supplierId", "unitPrice", "unitsInStock"`),
    /** Returns the suppliers of the given products that exist. */
    namedSuppliers: client
      .prepare<[rows: string], number>(
        "SELECT id FROM suppliers WHERE id IN (SELECT value ->> 'supplierId' FROM json_each(?))",
      )
      .pluck(),
    updateSupplier: client.prepare<[Change], Supplier>(`
      UPDATE suppliers SET city = iif(:hasCity, :city, city), country = coalesce(:country, country) WHERE id = :id
      RETURNING id, "companyName", city, country`),
    deleteLines: client.prepare<[id: number]>(`DELETE FROM order_details WHERE "orderId" = ?`),
    deleteOrder: client.prepare<[id: number]>("DELETE FROM orders WHERE id = ?"),
  };
}
