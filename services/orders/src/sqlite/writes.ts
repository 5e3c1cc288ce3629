/** The statements of what changes something, prepared once: preparing costs many times what running does. */
import { eq, sql } from "drizzle-orm";
import type { SqliteDatabase } from "./database.ts";
import { orderDetails, orders, products, suppliers } from "./schema.ts";

/** A column of the rows given as one JSON array: one parameter, however many rows. */
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
    /** Those suppliers that the given products name and that exist. */
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
