/**
 * The tables in PostgreSQL. After a change here, generate the migration for existing databases:
 *
 *     cd services/orders
 *     drizzle-kit generate --dialect postgresql --schema src/postgres/schema.ts --out migrations/postgres --name <what>
 */
import { date, index, integer, numeric, pgTable, primaryKey, serial, text } from "drizzle-orm/pg-core";

/** A changed id is changed in all references, and a row that is referenced cannot be deleted. */
const FOLLOW = { onUpdate: "cascade", onDelete: "restrict" } as const;

export const suppliers = pgTable("suppliers", {
  id: serial().primaryKey(),
  companyName: text().notNull(),
  city: text(),
  country: text().notNull(),
});

export const products = pgTable(
  "products",
  {
    id: serial().primaryKey(),
    name: text().notNull(),
    /** `fold(name)`, for searches. The service computes it, so that both variants agree on every letter. */
    foldedName: text().notNull(),
    supplierId: integer()
      .notNull()
      .references(() => suppliers.id, FOLLOW),
    unitPrice: numeric({ precision: 10, scale: 4 }).notNull(),
    unitsInStock: integer().notNull(),
  },
  (table) => [
    index("products_supplierId_index").on(table.supplierId),
    // Trigrams, for searches within names. The first migration creates the extension and was written by hand.
    index("products_foldedName_index").using("gin", table.foldedName.op("gin_trgm_ops")),
  ],
);

export const orders = pgTable("orders", {
  id: serial().primaryKey(),
  orderDate: date({ mode: "string" }).notNull(),
  shippedDate: date({ mode: "string" }),
  shipAddress: text().notNull(),
  shipPostalCode: text(),
  shipCountry: text().notNull(),
});

export const orderDetails = pgTable(
  "order_details",
  {
    orderId: integer()
      .notNull()
      .references(() => orders.id, FOLLOW),
    productId: integer()
      .notNull()
      .references(() => products.id, FOLLOW),
    quantity: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orderId, table.productId] }),
    index("order_details_productId_index").on(table.productId),
  ],
);
