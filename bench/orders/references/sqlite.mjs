/** The service's reads with nothing but better-sqlite3. The file has prices as whole ten-thousandths. */
import Database from "better-sqlite3";
import { formatUnits } from "../../../services/orders/src/decimal.ts";
import { fold } from "../../../services/orders/src/fold.ts";
import { serve } from "./serve.mjs";

const db = new Database(process.env.ORDERS_SQLITE_PATH);
const MATCHES = `FROM products WHERE instr("foldedName", ?) > 0`;
const PAGE = "ORDER BY id LIMIT ? OFFSET ?";
const SUMMARY = `SELECT id, name, "unitPrice", "unitsInStock"`;
const product = db.prepare(`
  SELECT p.id, p.name, p."supplierId", p."unitPrice", p."unitsInStock", s.id, s."companyName", s.city, s.country
  FROM products p LEFT JOIN suppliers s ON s.id = p."supplierId" WHERE p.id = ?`);
const order = db.prepare(`
  SELECT o.id, o."shipCountry", o."orderDate",
    cast(coalesce(sum(p."unitPrice" / 100000 * d.quantity), 0) AS text) AS high,
    cast(coalesce(sum(p."unitPrice" % 100000 * d.quantity), 0) AS text) AS low,
    coalesce(sum(d.quantity), 0) AS "totalQuantity", count(d."productId") AS "totalProducts"
  FROM orders o LEFT JOIN order_details d ON d."orderId" = o.id LEFT JOIN products p ON p.id = d."productId"
  WHERE o.id = ? GROUP BY o.id`);
const countAll = db.prepare("SELECT count(*) FROM products").pluck();
const pageAll = db.prepare(`${SUMMARY} FROM products ${PAGE}`);
const count = db.prepare(`SELECT count(*) ${MATCHES}`).pluck();
const page = db.prepare(`${SUMMARY} ${MATCHES} ${PAGE}`);

await serve({
  product(id) {
    const row = /** @type {any[]} */ (product.raw().get(id));
    const [, name, supplierId, unitPrice, unitsInStock, ofSupplier, companyName, city, country] = row;
    return {
      product: { id, name, supplierId, unitPrice: formatUnits(unitPrice), unitsInStock },
      supplier: { id: ofSupplier, companyName, city, country },
    };
  },
  order(id) {
    const { high, low, shipCountry, orderDate, totalQuantity, totalProducts } = /** @type {any} */ (order.get(id));
    const totalPrice = Number(BigInt(high) * 100_000n + BigInt(low)) / 10_000;
    return { id, shipCountry, orderDate, totalPrice, totalQuantity, totalProducts };
  },
  search(name, limit, offset) {
    const needle = fold(name);
    const rows = /** @type {any[]} */ (name === "" ? pageAll.all(limit, offset) : page.all(needle, limit, offset));
    for (const row of rows) row.unitPrice = formatUnits(row.unitPrice);
    return { items: rows, total: name === "" ? countAll.get() : count.get(needle) };
  },
});
