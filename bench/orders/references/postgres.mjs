/** The service's reads with nothing but pg and named statements. */
import pg from "pg";
import { fold } from "../../../services/orders/src/fold.ts";
import { serve } from "./serve.mjs";

const { DB_HOST, DB_PORT, DB_USER, DB_PASSWORD, DB_NAME } = process.env;
const pool = new pg.Pool({
  ...{ host: DB_HOST, port: Number(DB_PORT), user: DB_USER, password: DB_PASSWORD, database: DB_NAME },
  // The same number as the service has.
  max: 10,
});
/** @param {string} condition @param {string} offset @param {string} limit */
const search = (condition, offset, limit) => `
  SELECT page.*, matches.total
  FROM (SELECT count(*)::int AS total FROM products ${condition}) AS matches
  LEFT JOIN (
    SELECT id, name, "unitPrice", "unitsInStock" FROM products ${condition} ORDER BY id OFFSET ${offset} LIMIT ${limit}
  ) AS page ON true
  ORDER BY page.id`;
const ALL = { name: "all", text: search("", "$1", "$2") };
const SOME = { name: "some", text: search(`WHERE "foldedName" LIKE $1`, "$2", "$3") };
const PRODUCT = {
  name: "product",
  text: `
    SELECT p.id, p.name, p."supplierId", p."unitPrice", p."unitsInStock", s.id, s."companyName", s.city, s.country
    FROM products p LEFT JOIN suppliers s ON s.id = p."supplierId" WHERE p.id = $1`,
  rowMode: /** @type {const} */ ("array"),
};
const ORDER = {
  name: "order",
  text: `
    SELECT o.id, o."shipCountry", o."orderDate"::text AS "orderDate",
      round(coalesce(sum(p."unitPrice" * d.quantity), 0), 4) AS "totalPrice",
      coalesce(sum(d.quantity), 0)::float8 AS "totalQuantity", count(d."productId")::int AS "totalProducts"
    FROM orders o LEFT JOIN order_details d ON d."orderId" = o.id LEFT JOIN products p ON p.id = d."productId"
    WHERE o.id = $1 GROUP BY o.id`,
};

await serve({
  async product(id) {
    const [row = []] = (await pool.query({ ...PRODUCT, values: [id] })).rows;
    const [, name, supplierId, unitPrice, unitsInStock, ofSupplier, companyName, city, country] = row;
    return {
      product: { id, name, supplierId, unitPrice, unitsInStock },
      supplier: { id: ofSupplier, companyName, city, country },
    };
  },
  async order(id) {
    const { rows } = await pool.query({ ...ORDER, values: [id] });
    return { ...rows[0], totalPrice: Number(rows[0].totalPrice) };
  },
  async search(name, limit, offset) {
    const needle = `%${fold(name).replace(/[\\%_]/g, String.raw`\$&`)}%`;
    const { rows } = await pool.query(
      name === "" ? { ...ALL, values: [offset, limit] } : { ...SOME, values: [needle, offset, limit] },
    );
    const items = rows[0].id === null ? [] : rows.map(({ total: _, ...item }) => item);
    return { items, total: rows[0].total };
  },
});
