/** The queries that change nothing. */
import { count, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import type { PoolClient } from "pg";
import { fold } from "../fold.ts";
import type { ProductSearch, ProductSummary } from "../storage.ts";
import { orderDetails, orders, products, suppliers } from "./schema.ts";

/** Ids are of PostgreSQL's type integer: there can be no row beyond, and asking would be an error. */
export const LARGEST_ID = 2 ** 31 - 1;

/** The prepared statements of one connection. */
export type Reads = ReturnType<typeof prepareReads>;
const prepared = new WeakMap<PoolClient, Reads>();

/** Made on first use; they live as long as the connection. */
export function readsOn(client: PoolClient): Reads {
  let reads = prepared.get(client);
  if (reads === undefined) {
    reads = prepareReads(client);
    prepared.set(client, reads);
  }
  return reads;
}

function prepareReads(client: PoolClient) {
  const database = drizzle({ client });
  const price = sql<string>`round(coalesce(sum(${products.unitPrice} * ${orderDetails.quantity}), 0), 4)`;
  return {
    product: database
      .select({
        product: {
          id: products.id,
          name: products.name,
          supplierId: products.supplierId,
          unitPrice: products.unitPrice,
          unitsInStock: products.unitsInStock,
        },
        supplier: suppliers,
      })
      .from(products)
      .leftJoin(suppliers, eq(suppliers.id, products.supplierId))
      .where(eq(products.id, sql.placeholder("id")))
      .prepare("product"),
    order: database
      .select({
        id: orders.id,
        shipCountry: orders.shipCountry,
        orderDate: orders.orderDate,
        totalPrice: price,
        totalQuantity: sql`coalesce(sum(${orderDetails.quantity}), 0)`.mapWith(Number),
        totalProducts: count(orderDetails.productId),
      })
      .from(orders)
      .leftJoin(orderDetails, eq(orderDetails.orderId, orders.id))
      .leftJoin(products, eq(products.id, orderDetails.productId))
      .where(eq(orders.id, sql.placeholder("id")))
      .groupBy(orders.id)
      .prepare("order"),
  };
}

type FoundRow = { [Column in keyof ProductSummary]: ProductSummary[Column] | null } & { total: number };

/** Matches and their number in one statement, so that they agree. */
function searchText(condition: string, offset: string, limit: string): string {
  return `
    SELECT page.*, matches.total
    FROM (SELECT count(*)::int AS total FROM products ${condition}) AS matches
    LEFT JOIN (
      SELECT id, name, "unitPrice", "unitsInStock" FROM products ${condition} ORDER BY id OFFSET ${offset} LIMIT ${limit}
    ) AS page ON true
    ORDER BY page.id`;
}
const ALL = { name: "products", text: searchText("", "$1", "$2") };
/** Without a name, so that it is planned anew for each needle: the index is of use only for some. */
const SOME = { text: searchText(`WHERE "foldedName" LIKE $1`, "$2", "$3") };

/** Products whose name contains the text, in any case. */
export async function searchProducts(
  client: PoolClient,
  { name, offset, limit }: ProductSearch,
): Promise<{ items: ProductSummary[]; total: number }> {
  // PostgreSQL has no such character in a text.
  if (name.includes("\0")) return { items: [], total: 0 };
  const page = [offset, limit];
  const query = name === "" ? { ...ALL, values: page } : { ...SOME, values: [`%${literally(fold(name))}%`, ...page] };
  const { rows } = await client.query<FoundRow>(query);
  const items = rows.flatMap(({ id, name: found, unitPrice, unitsInStock }) =>
    id === null || found === null || unitPrice === null || unitsInStock === null
      ? []
      : [{ id, name: found, unitPrice, unitsInStock }],
  );
  return { items, total: rows[0]?.total ?? 0 };
}

/** Takes the meaning from the characters that LIKE gives one. */
export function literally(needle: string): string {
  return needle.replace(/[\\%_]/g, String.raw`\$&`);
}
