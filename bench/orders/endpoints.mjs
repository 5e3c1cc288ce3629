/** The bench's requests: the same ones, in the same order, for every server and in every run. */
import { SIZES, seedData } from "../../services/orders/src/seed/data.ts";
import { Random } from "../../services/orders/src/seed/random.ts";
import { QUALITIES } from "../../services/orders/src/seed/words.ts";

const { products, orders } = SIZES.medium;
const SEED = 1;
const PAGE = 20;
const names = productNames();

/** @param {string} name */
const search = (name) => `/products?name=${encodeURIComponent(name)}`;

/**
 * @typedef {object} Endpoint
 * @property {string} name
 * @property {(random: Random) => string} path
 */

/** @type {Endpoint[]} */
export const ENDPOINTS = [
  { name: "product by id", path: (random) => `/products/${random.integer(1, products)}` },
  { name: "order by id", path: (random) => `/orders/${random.integer(1, orders)}` },
  // A product's whole name has a handful of matches; a quality matches one product in twenty.
  { name: "search, rare name", path: (random) => search(random.pick(names)) },
  { name: "search, common name", path: (random) => search(random.pick(QUALITIES)) },
  { name: "list", path: (random) => `/products?offset=${PAGE * random.integer(0, products / PAGE - 1)}` },
];

/**
 * Returns the paths that one connection requests.
 *
 * @param {Endpoint} endpoint
 * @param {number} connection Its number. Each connection has its own sequence.
 * @param {number} count
 */
export function pathsOf({ path }, connection, count) {
  const random = new Random(SEED + connection);
  return Array.from({ length: count }, () => path(random));
}

function productNames() {
  /** @type {string[]} */
  const found = [];
  for (const batch of seedData(SIZES.medium)) {
    if (batch.table === "products") found.push(...batch.rows.map((row) => row.name));
    else if (batch.table === "orders") return found;
  }
  return found;
}
