/** The queries that only read. All have names, so that each connection prepares them once. */
import type { PoolClient } from "pg";
import { fold } from "../fold.ts";
import type { OrderTotals, Product, ProductSearch, ProductSummary, Supplier } from "../storage.ts";

/** Ids have PostgreSQL's type integer. A larger id cannot exist, and querying it would be an error. */
export const LARGEST_ID = 2 ** 31 - 1;

/** Whether a row could have this id. */
export const isId = (id: number) => id > 0 && id <= LARGEST_ID;

/** Rows as arrays, because columns of two tables have the same names. */
const PRODUCT = {
  name: "product",
  text: `
    SELECT products.id, name, "supplierId", "unitPrice", "unitsInStock",
      suppliers.id, "companyName", city, country
    FROM products LEFT JOIN suppliers ON suppliers.id = "supplierId"
    WHERE products.id = $1`,
  rowMode: "array" as const,
};
type ProductRow = [number, string, number, string, number, number | null, string, string | null, string];

/** Returns a product and its supplier. Undefined when there is no such product. */
export async function findProduct(
  client: PoolClient,
  wanted: number,
): Promise<{ product: Product; supplier: Supplier | null } | undefined> {
  const [row] = (await client.query<ProductRow>({ ...PRODUCT, values: [wanted] })).rows;
  if (!row) return undefined;
  const [id, name, supplierId, unitPrice, unitsInStock, ofSupplier, companyName, city, country] = row;
  const supplier = ofSupplier === null ? null : { id: ofSupplier, companyName, city, country };
  return { product: { id, name, supplierId, unitPrice, unitsInStock }, supplier };
}

const EXISTING = { name: "existing suppliers", text: "SELECT id FROM suppliers WHERE id = ANY($1::integer[])" };

/** Returns which of the suppliers exist. */
export async function existingSuppliers(client: PoolClient, ids: number[]): Promise<Set<number>> {
  const { rows } = await client.query<{ id: number }>({ ...EXISTING, values: [ids.filter(isId)] });
  return new Set(rows.map(({ id }) => id));
}

const ORDER = {
  name: "order",
  text: `
    SELECT orders.id, "shipCountry", "orderDate"::text AS "orderDate",
      round(coalesce(sum("unitPrice" * quantity), 0), 4) AS "totalPrice",
      coalesce(sum(quantity), 0)::float8 AS "totalQuantity", count("productId")::int AS "totalProducts"
    FROM orders
    LEFT JOIN order_details ON "orderId" = orders.id
    LEFT JOIN products ON products.id = "productId"
    WHERE orders.id = $1
    GROUP BY orders.id`,
};

/** Returns an order with its totals. Undefined when there is no such order. */
export async function findOrder(client: PoolClient, id: number): Promise<OrderTotals | undefined> {
  const [row] = (await client.query<OrderTotals>({ ...ORDER, values: [id] })).rows;
  return row;
}

type FoundRow = { [Column in keyof ProductSummary]: ProductSummary[Column] | null } & { total: number };

/** Finds matches and their number in one statement, so that the two agree. */
function searchText(condition: string, offset: string, limit: string): string {
  return `
    SELECT page.*, matches.total
    FROM (SELECT count(*)::int AS total FROM products ${condition}) AS matches
    LEFT JOIN (
      SELECT id, name, "unitPrice", "unitsInStock" FROM products ${condition} ORDER BY id OFFSET ${offset} LIMIT ${limit}
    ) AS page ON true
    ORDER BY page.id`;
}
const ALL = { name: "all products", text: searchText("", "$1", "$2") };
/** Uses the index of trigrams. PostgreSQL finds a plan that suits most search texts, and keeps it. */
const LONG = { name: "products by name", text: searchText(`WHERE "foldedName" LIKE $1`, "$2", "$3") };
/** For search texts without a trigram, for which that plan would first read the whole index. This one reads the table. */
const SHORT = { name: "products by short name", text: searchText(`WHERE strpos("foldedName", $1) > 0`, "$2", "$3") };
/** Trigrams are made of letters and digits. */
const TRIGRAM = /[\p{L}\p{N}]{3}/u;

/** Finds products whose name contains the text, in any case. */
export async function searchProducts(
  client: PoolClient,
  { name, offset, limit }: ProductSearch,
): Promise<{ items: ProductSummary[]; total: number }> {
  // PostgreSQL cannot store this character in a text.
  if (name.includes("\0")) return { items: [], total: 0 };
  const { rows } = await client.query<FoundRow>(searchQuery(fold(name), [offset, limit]));
  const items = rows.flatMap(({ id, name: found, unitPrice, unitsInStock }) =>
    id === null || found === null || unitPrice === null || unitsInStock === null
      ? []
      : [{ id, name: found, unitPrice, unitsInStock }],
  );
  return { items, total: rows[0]?.total ?? 0 };
}

function searchQuery(needle: string, page: [offset: number, limit: number]) {
  if (needle === "") return { ...ALL, values: page };
  if (TRIGRAM.test(needle)) return { ...LONG, values: [`%${literally(needle)}%`, ...page] };
  return { ...SHORT, values: [needle, ...page] };
}

/** Escapes the characters that have a meaning in LIKE. */
export function literally(needle: string): string {
  return needle.replace(/[\\%_]/g, String.raw`\$&`);
}
