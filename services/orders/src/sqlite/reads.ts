/** The queries that only read. Plain SQL, because a mapper's work on every row would dominate the time. */
import type { Database } from "better-sqlite3";
import { formatUnits } from "../decimal.ts";
import { fold } from "../fold.ts";
import type { OrderTotals, Product, ProductSearch, ProductSummary, Supplier } from "../storage.ts";

/** Price times quantity may exceed 64 bits, so prices are summed in two parts of five digits. */
const PRICE_PART = 100_000;

const PRODUCT = `
  SELECT products.id, name, "supplierId", "unitPrice", "unitsInStock", suppliers.id, "companyName", city, country
  FROM products LEFT JOIN suppliers ON suppliers.id = "supplierId"
  WHERE products.id = ?`;
type ProductRow = [number, string, number, number, number, number | null, string, string | null, string];

/** Sums as text, because they may have more digits than a JavaScript number. */
const ORDER = `
  SELECT orders.id, "shipCountry", "orderDate",
    cast(coalesce(sum("unitPrice" / ${PRICE_PART} * quantity), 0) AS text) AS high,
    cast(coalesce(sum("unitPrice" % ${PRICE_PART} * quantity), 0) AS text) AS low,
    coalesce(sum(quantity), 0) AS "totalQuantity", count("productId") AS "totalProducts"
  FROM orders
  LEFT JOIN order_details ON "orderId" = orders.id
  LEFT JOIN products ON products.id = "productId"
  WHERE orders.id = ?
  GROUP BY orders.id`;
type OrderRow = Omit<OrderTotals, "totalPrice"> & { high: string; low: string };

const SUMMARIES = `SELECT id, name, "unitPrice", "unitsInStock" FROM products`;
const COUNT = "SELECT count(*) FROM products";
const MATCHES = `WHERE instr("foldedName", ?) > 0`;
const PAGE = "ORDER BY id LIMIT ? OFFSET ?";
type SummaryRow = Omit<ProductSummary, "unitPrice"> & { unitPrice: number };

/** Prepares the statements on a database. Preparing takes many times as long as running. */
export function prepareReads(client: Database) {
  const product = client.prepare<[number], ProductRow>(PRODUCT).raw();
  const order = client.prepare<[number], OrderRow>(ORDER);
  const countAll = client.prepare<[], number>(COUNT).pluck();
  const all = client.prepare<[number, number], SummaryRow>(`${SUMMARIES} ${PAGE}`);
  const countMatching = client.prepare<[string], number>(`${COUNT} ${MATCHES}`).pluck();
  const matching = client.prepare<[string, number, number], SummaryRow>(`${SUMMARIES} ${MATCHES} ${PAGE}`);

  /** Reads page and total from one view of the table, also while another process writes. */
  const search = client.transaction(({ name, offset, limit }: ProductSearch) => {
    if (name === "") return { rows: all.all(limit, offset), total: countAll.get() ?? 0 };
    const needle = fold(name);
    // Counting reads a narrow index. If the page is empty, the table is not read at all.
    const total = countMatching.get(needle) ?? 0;
    return { rows: total > offset ? matching.all(needle, limit, offset) : [], total };
  });

  return {
    /** Returns a product and its supplier. Undefined when there is no such product. */
    product(wanted: number): { product: Product; supplier: Supplier | null } | undefined {
      const row = product.get(wanted);
      if (!row) return undefined;
      const [id, name, supplierId, units, unitsInStock, ofSupplier, companyName, city, country] = row;
      const supplier = ofSupplier === null ? null : { id: ofSupplier, companyName, city, country };
      return { product: { id, name, supplierId, unitPrice: formatUnits(units), unitsInStock }, supplier };
    },

    /** Returns an order with its totals. Undefined when there is no such order. */
    order(id: number): OrderTotals | undefined {
      const row = order.get(id);
      if (!row) return undefined;
      const { high, low, shipCountry, orderDate, totalQuantity, totalProducts } = row;
      const totalPrice = formatUnits(BigInt(high) * BigInt(PRICE_PART) + BigInt(low));
      return { id, shipCountry, orderDate, totalPrice, totalQuantity, totalProducts };
    },

    /** Finds products whose name contains the text, in any case. */
    search(wanted: ProductSearch): { items: ProductSummary[]; total: number } {
      const { rows, total } = search(wanted);
      return { items: rows.map((row) => ({ ...row, unitPrice: formatUnits(row.unitPrice) })), total };
    },
  };
}
