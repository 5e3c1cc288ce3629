/** The statements that write, prepared once, because preparing takes many times as long as running. */
import { eq, sql } from "drizzle-orm";
import type { SqliteDatabase } from "./database.ts";
import { orderDetails, orders, products, suppliers } from "./schema.ts";

/** A column of rows that are passed as one JSON array, which is a single parameter for any number of rows. */
const given = (column: string) => sql.raw(`value ->> '${column}'`);
const rows = sql`json_each(${sql.placeholder("rows")})`;

/** Prepares the statements on a database. */
export function prepareWrites({ db }: SqliteDatabase) {
  const id = sql.placeholder("id");
  const { name, supplierId, unitPrice, unitsInStock } = products;
  return {
    insertSuppliers: db
      .insert(suppliers)
      .select(
        sql`select null, ${given("companyName")}, ${given("city")}, ${given("country")} from ${rows} order by key`,
      )
      .returning()
      .prepare(),
    insertProducts: db
      .insert(products)
      .select(
        sql`select null, ${given("name")}, ${given("foldedName")}, ${given("supplierId")}, ${given("unitPrice")},
          ${given("unitsInStock")} from ${rows} order by key`,
      )
      .returning({ id: products.id, name, supplierId, unitPrice, unitsInStock })
      .prepare(),
    /** Returns the suppliers of the given products that exist. */
    namedSuppliers: db
      .select({ id: suppliers.id })
      .from(suppliers)
      .where(sql`${suppliers.id} in (select ${given("supplierId")} from ${rows})`)
      .prepare(),
    updateSupplier: db
      .update(suppliers)
      .set({
        city: sql`iif(${sql.placeholder("hasCity")}, ${sql.placeholder("city")}, ${suppliers.city})`,
        country: sql`coalesce(${sql.placeholder("country")}, ${suppliers.country})`,
      })
      .where(eq(suppliers.id, id))
      .returning()
      .prepare(),
    deleteLines: db.delete(orderDetails).where(eq(orderDetails.orderId, id)).prepare(),
    deleteOrder: db.delete(orders).where(eq(orders.id, id)).prepare(),
  };
}
