/**
 * The tables in SQLite. After a change here, generate the migration for existing databases:
 *
 *     cd services/orders
 *     drizzle-kit generate --dialect sqlite --schema src/sqlite/schema.ts --out migrations/sqlite --name <what>
 */
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Never assigns an id twice, like PostgreSQL's `serial`. */
const id = () => integer().primaryKey({ autoIncrement: true });

export const suppliers = sqliteTable("suppliers", {
  id: id(),
  companyName: text().notNull(),
  city: text(),
  country: text().notNull(),
});

export const products = sqliteTable(
  "products",
  {
    id: id(),
    name: text().notNull(),
    /** `fold(name)`, for searches. */
    foldedName: text().notNull(),
    supplierId: integer()
      .notNull()
      .references(() => suppliers.id),
    /** In ten-thousandths: SQLite has no decimals, and its floats are not exact. */
    unitPrice: integer().notNull(),
    unitsInStock: integer().notNull(),
  },
  (table) => [
    // Not for lookups: counting matches scans this index instead of the wider table.
    index("products_foldedName_index").on(table.foldedName),
    index("products_supplierId_index").on(table.supplierId),
  ],
);

export const orders = sqliteTable("orders", {
  id: id(),
  orderDate: text().notNull(),
  shippedDate: text(),
  shipAddress: text().notNull(),
  shipPostalCode: text(),
  shipCountry: text().notNull(),
});

export const orderDetails = sqliteTable(
  "order_details",
  {
    orderId: integer()
      .notNull()
      .references(() => orders.id),
    productId: integer()
      .notNull()
      .references(() => products.id),
    quantity: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orderId, table.productId] }),
    index("order_details_productId_index").on(table.productId),
  ],
);
