/** The transactions that write. Each returns its transaction's id. */
import type { DatabaseError, PoolClient } from "pg";
import { fold } from "../fold.ts";
import type { NewProduct, NewSupplier, Product, Supplier, SupplierChanges } from "../storage.ts";
import { sqlState } from "./faults.ts";
import { isId } from "./reads.ts";
import type { Written } from "./transaction.ts";

type Row<T> = T & { xid: string };
const XID = "pg_current_xact_id()::text AS xid";

const INSERT_SUPPLIERS = {
  name: "insert suppliers",
  text: `
    INSERT INTO suppliers ("companyName", city, country)
    SELECT "companyName", city, country
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS given ("companyName", city, country, place)
    ORDER BY place
    RETURNING id, "companyName", city, country, ${XID}`,
};

/** Inserts all rows with one statement, which assigns ids in order and returns the rows in order. */
export async function insertSuppliers(client: PoolClient, rows: NewSupplier[]): Promise<Written<Supplier[]>> {
  const values = [
    rows.map((row) => row.companyName),
    rows.map((row) => row.city ?? null),
    rows.map((row) => row.country),
  ];
  return written((await client.query<Row<Supplier>>({ ...INSERT_SUPPLIERS, values })).rows);
}

const INSERT_PRODUCTS = {
  name: "insert products",
  text: `
    INSERT INTO products (name, "foldedName", "supplierId", "unitPrice", "unitsInStock")
    SELECT name, "foldedName", "supplierId", "unitPrice", "unitsInStock"
    FROM unnest($1::text[], $2::text[], $3::integer[], $4::numeric[], $5::integer[])
      WITH ORDINALITY AS given (name, "foldedName", "supplierId", "unitPrice", "unitsInStock", place)
    ORDER BY place
    RETURNING id, name, "supplierId", "unitPrice", "unitsInStock", ${XID}`,
};
const FOREIGN_KEY_VIOLATION = "23503";

/** Does the same for products. Fails with a foreign key violation when a supplier does not exist. */
export async function insertProducts(client: PoolClient, rows: NewProduct[]): Promise<Written<Product[]>> {
  const values = [
    rows.map((row) => row.name),
    rows.map((row) => fold(row.name)),
    // No supplier has an id beyond the column's type, or the id 0.
    rows.map(({ supplierId }) => (isId(supplierId) ? supplierId : 0)),
    rows.map((row) => row.unitPrice),
    rows.map((row) => row.unitsInStock),
  ];
  return written((await client.query<Row<Product>>({ ...INSERT_PRODUCTS, values })).rows);
}

const UPDATE_SUPPLIER = {
  name: "update supplier",
  text: `
    UPDATE suppliers SET city = CASE WHEN $2 THEN $3 ELSE city END, country = coalesce($4, country) WHERE id = $1
    RETURNING id, "companyName", city, country, ${XID}`,
};

/** Undefined when there is no such row. */
export async function changeSupplier(
  client: PoolClient,
  id: number,
  changes: SupplierChanges,
): Promise<Written<Supplier | undefined>> {
  const values = [id, changes.city !== undefined, changes.city ?? null, changes.country ?? null];
  const { result, xid } = written((await client.query<Row<Supplier>>({ ...UPDATE_SUPPLIER, values })).rows);
  return { result: result[0], xid };
}

const DELETE_LINES = { name: "delete lines", text: `DELETE FROM order_details WHERE "orderId" = $1` };
const DELETE_ORDER = { name: "delete order", text: `DELETE FROM orders WHERE id = $1 RETURNING ${XID}` };

/** Deletes the lines, then the order. False when there is no such order. */
export async function removeOrder(client: PoolClient, id: number): Promise<Written<boolean>> {
  await client.query({ ...DELETE_LINES, values: [id] });
  const { rows } = await client.query<{ xid: string }>({ ...DELETE_ORDER, values: [id] });
  return { result: rows.length > 0, xid: rows[0]?.xid };
}

/** `detail` says which row refers to which. */
export function isForeignKeyViolation(error: unknown): error is DatabaseError {
  return sqlState(error) === FOREIGN_KEY_VIOLATION;
}

function written<T extends object>(rows: Row<T>[]): Written<T[]> {
  const result = rows.map(({ xid: _, ...row }) => row as unknown as T);
  return { result, xid: rows[0]?.xid };
}
