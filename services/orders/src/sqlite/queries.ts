/** Every statement of the service, prepared once: preparing costs many times what running does. */
import { eq, sql } from "drizzle-orm";
import type { SqliteDatabase } from "./database.ts";
import { orderDetails, orders, products, suppliers } from "./schema.ts";

/** The product of a price and a quantity may pass 64 bits, so the price is summed in two parts of five digits. */
export const PRICE_PART = 100_000;

const needle = sql.placeholder("needle");
const matches = sql`instr(${products.foldedName}, ${needle}) > 0`;

/** A column of the rows given as one JSON array: one parameter, however many rows. */
const given = (column: string) => sql.raw(`value ->> '${column}'`);
const rows = sql`json_each(${sql.placeholder("rows")})`;

/** Prepares all statements on a database. */
export function prepareQueries({ db }: SqliteDatabase) {
  const id = sql.placeholder("id");
  const page = { limit: sql.placeholder("limit"), offset: sql.placeholder("offset") };
  const { unitPrice, unitsInStock } = products;
  const summary = { id: products.id, name: products.name, unitPrice, unitsInStock };
  const { supplierId } = products;
  const product = { id: products.id, name: products.name, supplierId, unitPrice, unitsInStock };
  const { quantity } = orderDetails;
  const part = sql.raw(String(PRICE_PART));
  const total = { total: sql<number>`count(*)` };
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
      .returning(product)
      .prepare(),
    product: db
      .select({ product, supplier: suppliers })
      .from(products)
      .leftJoin(suppliers, eq(suppliers.id, products.supplierId))
      .where(eq(products.id, id))
      .prepare(),
    allProducts: db.select(summary).from(products).orderBy(products.id).limit(page.limit).offset(page.offset).prepare(),
    countAll: db.select(total).from(products).prepare(),
    matchingProducts: db
      .select(summary)
      .from(products)
      .where(matches)
      .orderBy(products.id)
      .limit(page.limit)
      .offset(page.offset)
      .prepare(),
    countMatching: db.select(total).from(products).where(matches).prepare(),
    order: db
      .select({
        id: orders.id,
        shipCountry: orders.shipCountry,
        orderDate: orders.orderDate,
        // As text: the sums may have more digits than a JavaScript number.
        high: sql<string>`cast(coalesce(sum(${unitPrice} / ${part} * ${quantity}), 0) as text)`,
        low: sql<string>`cast(coalesce(sum(${unitPrice} % ${part} * ${quantity}), 0) as text)`,
        totalQuantity: sql<number>`coalesce(sum(${quantity}), 0)`,
        totalProducts: sql<number>`count(${orderDetails.productId})`,
      })
      .from(orders)
      .leftJoin(orderDetails, eq(orderDetails.orderId, orders.id))
      .leftJoin(products, eq(products.id, orderDetails.productId))
      .where(eq(orders.id, id))
      .groupBy(orders.id)
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
    check: db.select({ id: suppliers.id }).from(suppliers).limit(1).prepare(),
  };
}
