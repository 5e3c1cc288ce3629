/** The queries that change nothing. SQL by hand: a mapper's work on every row is what a reader would wait for. */
import type { Database } from "better-sqlite3";
import { formatUnits } from "../decimal.ts";
import { fold } from "../fold.ts";
import type { OrderTotals, Product, ProductSearch, ProductSummary, Supplier } from "../storage.ts";

/** The product of a price and a quantity may pass 64 bits, so the price is summed in two parts of five digits. */
const PRICE_PART = 100_000;

const PRODUCT = `
  SELECT products.id, name, "supplierId", "unitPrice", "unitsInStock", suppliers.id, "companyName", city, country
  FROM products LEFT JOIN suppliers ON suppliers.id = "supplierId"
  WHERE products.id = ?`;
type ProductRow = [number, string, number, number, number, number | null, string, string | null, string];

/** The sums as text: they may have more digits than a JavaScript number. */
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

/** Prepares the statements on a database; preparing costs many times what running does. */
export function prepareReads(client: Database) {
  const product = client.prepare<[number], ProductRow>(PRODUCT).raw();
  const order = client.prepare<[number], OrderRow>(ORDER);
  const countAll = client.prepare<[], number>(COUNT).pluck();
  const all = client.prepare<[number, number], SummaryRow>(`${SUMMARIES} ${PAGE}`);
  const countMatching = client.prepare<[string], number>(`${COUNT} ${MATCHES}`).pluck();
  const matching = client.prepare<[string, number, number], SummaryRow>(`${SUMMARIES} ${MATCHES} ${PAGE}`);

  /** One view of the table for page and total, also while another process writes. */
  const search = client.transaction(({ name, offset, limit }: ProductSearch) => {
    if (name === "") return { rows: all.all(limit, offset), total: countAll.get() ?? 0 };
    const needle = fold(name);
    // Counting reads a narrow index; where nothing is left for the page, the table is not read at all.
    const total = countMatching.get(needle) ?? 0;
    return { rows: total > offset ? matching.all(needle, limit, offset) : [], total };
  });

  return {
    /** A product and its supplier. Undefined: no such product. */
    product(wanted: number): { product: Product; supplier: Supplier | null } | undefined {
      const row = product.get(wanted);
      if (!row) return undefined;
      const [id, name, supplierId, units, unitsInStock, ofSupplier, companyName, city, country] = row;
      const supplier = ofSupplier === null ? null : { id: ofSupplier, companyName, city, country };
      return { product: { id, name, supplierId, unitPrice: formatUnits(units), unitsInStock }, supplier };
    },

    /** An order with its totals. Undefined: no such order. */
    order(id: number): OrderTotals | undefined {
      const row = order.get(id);
      if (!row) return undefined;
      const { high, low, shipCountry, orderDate, totalQuantity, totalProducts } = row;
      const totalPrice = formatUnits(BigInt(high) * BigInt(PRICE_PART) + BigInt(low));
      return { id, shipCountry, orderDate, totalPrice, totalQuantity, totalProducts };
    },

    /** Products whose name contains the text, in any case. */
    search(wanted: ProductSearch): { items: ProductSummary[]; total: number } {
      const { rows, total } = search(wanted);
      return { items: rows.map((row) => ({ ...row, unitPrice: formatUnits(row.unitPrice) })), total };
    },
  };
}
