/** What the seed asks of a database. `sqlite/seeder.ts` and `postgres/seeder.ts` implement it. */
import type { Product, Supplier } from "../storage.ts";

/** An order as it is stored. */
export interface OrderRow {
  id: number;
  /** `YYYY-MM-DD`, like the next. */
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

/** In the order in which they can be filled: whoever is referred to comes first. */
export const SEED_TABLES: readonly SeedTable[] = ["suppliers", "products", "orders", "order_details"];

/** Fills a database in one transaction: until `commit`, nobody sees any of it. */
export interface Seeder {
  /** Whether there is no row in any of the tables. */
  isEmpty(): Promise<boolean>;
  /** Removes all rows of all tables. */
  clear(): Promise<void>;
  /** At most 1,000 rows at a time; `foldedName` of products is the seeder's own business. */
  insert<T extends SeedTable>(table: T, rows: SeedRows[T][]): Promise<void>;
  /** Makes it last, lets new ids follow the highest ones, and refreshes the planner's statistics. */
  commit(): Promise<void>;
  /** Ends the connection. Without a `commit` before, the database is as it was. */
  close(): Promise<void>;
}
