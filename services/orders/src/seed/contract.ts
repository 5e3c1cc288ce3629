/** What the seed needs from a database. `sqlite/seeder.ts` and `postgres/seeder.ts` implement it. */
import type { Product, Supplier } from "../storage.ts";

/** An order as it is stored. */
export interface OrderRow {
  id: number;
  /** `YYYY-MM-DD`, like the two below. */
  orderDate: string;
  shippedDate: string | null;
  shipAddress: string;
  shipPostalCode: string | null;
  shipCountry: string;
}

/** A line of an order as it is stored. */
export interface OrderDetailRow {
  orderId: number;
  productId: number;
  quantity: number;
}

/** The rows of each table, ids included: they count from 1, so that every seeded database is the same. */
export interface SeedRows {
  suppliers: Supplier;
  products: Product;
  orders: OrderRow;
  order_details: OrderDetailRow;
}

/** A table's name. */
export type SeedTable = keyof SeedRows;

/** In the order in which tables can be filled: a table comes after those it refers to. */
export const SEED_TABLES: readonly SeedTable[] = ["suppliers", "products", "orders", "order_details"];

/** Fills a database in one transaction: no other connection sees any of it before `commit`. */
export interface Seeder {
  /** Whether all tables are empty. */
  isEmpty(): Promise<boolean>;
  /** Removes all rows of all tables. */
  clear(): Promise<void>;
  /** Adds up to 1,000 rows. The seeder fills in `foldedName` of products itself. */
  insert<T extends SeedTable>(table: T, rows: SeedRows[T][]): Promise<void>;
  /** Commits, makes new ids follow the highest ones, and refreshes the planner's statistics. */
  commit(): Promise<void>;
  /** Ends the connection. Without a `commit` before, the database is unchanged. */
  close(): Promise<void>;
}
