/** Generates the sample data, which is plausible and the same every time. */
import { formatUnits } from "../decimal.ts";
import type { OrderDetailRow, OrderRow, SeedRows, SeedTable } from "./contract.ts";
import { Random } from "./random.ts";
import { FAMILIES, GOODS, PACKS, PLACES, QUALITIES, STREETS, TRADES } from "./words.ts";

/** Numbers of rows. An order has up to `maxLines` lines. */
export interface SeedSize {
  suppliers: number;
  products: number;
  orders: number;
  maxLines: number;
}

/** `medium` has about 370,000 rows. */
export const SIZES: Readonly<Record<"small" | "medium", SeedSize>> = {
  small: { suppliers: 30, products: 80, orders: 800, maxLines: 5 },
  medium: { suppliers: 1000, products: 5000, orders: 56_000, maxLines: 10 },
};

const SEED = 20_240_229;
const DAY_MS = 86_400_000;
const FIRST_DAY = Date.UTC(2021, 0, 1);
const DAYS = 1400;

type Batch = { [T in SeedTable]: { table: T; rows: SeedRows[T][] } }[SeedTable];

/** Estimates the number of rows. The number of lines is random. */
export function expectedRows({ suppliers, products, orders, maxLines }: SeedSize): number {
  return Math.round(suppliers + products + orders * (1 + (1 + maxLines) / 2));
}

/** Yields the data in batches, each table after those it refers to. */
export function* seedData(size: SeedSize, batchSize = 500): Generator<Batch> {
  const random = new Random(SEED);
  yield* batches("suppliers", size.suppliers, batchSize, (id) => supplier(random, id));
  yield* batches("products", size.products, batchSize, (id) => product(random, id, size.suppliers));
  for (let first = 1; first <= size.orders; first += batchSize) {
    const rows = range(first, Math.min(batchSize, size.orders - first + 1)).map((id) => order(random, id));
    yield { table: "orders", rows };
    const lines = rows.flatMap(({ id }) => orderLines(random, id, size));
    for (let at = 0; at < lines.length; at += batchSize) {
      yield { table: "order_details", rows: lines.slice(at, at + batchSize) };
    }
  }
}

function* batches<T extends "suppliers" | "products">(
  table: T,
  count: number,
  batchSize: number,
  make: (id: number) => SeedRows[T],
): Generator<Batch> {
  for (let first = 1; first <= count; first += batchSize) {
    yield { table, rows: range(first, Math.min(batchSize, count - first + 1)).map(make) } as Batch;
  }
}

function range(first: number, length: number): number[] {
  return Array.from({ length }, (_, index) => first + index);
}

function supplier(random: Random, id: number): SeedRows["suppliers"] {
  const { city, country } = random.pick(PLACES);
  const companyName = `${random.pick(FAMILIES)} ${random.pick(TRADES)}${id > 100 ? ` ${id}` : ""}`;
  return { id, companyName, city: random.chance(90) ? city : null, country };
}

function product(random: Random, id: number, suppliers: number): SeedRows["products"] {
  const words = [random.pick(QUALITIES), random.pick(GOODS), random.pick(PACKS)];
  const name = words.filter((word) => word !== "").join(" ");
  // Many cheap products, few expensive ones, and now and then a price with a fraction of a cent.
  const cents = Math.round(50 + 20_000 * random.next() ** 3);
  const units = cents * 100 + (random.chance(10) ? random.integer(1, 99) : 0);
  const unitsInStock = random.chance(5) ? 0 : random.integer(1, 500);
  return { id, name, supplierId: random.integer(1, suppliers), unitPrice: formatUnits(units), unitsInStock };
}

function order(random: Random, id: number): OrderRow {
  const { city, country, postal } = random.pick(PLACES);
  const ordered = random.integer(0, DAYS - 1);
  return {
    id,
    orderDate: day(ordered),
    shippedDate: random.chance(95) ? day(ordered + random.integer(1, 21)) : null,
    shipAddress: `${random.pick(STREETS)} ${random.integer(1, 199)}, ${city}`,
    shipPostalCode: postal && postalCode(random, postal),
    shipCountry: country,
  };
}

function orderLines(random: Random, orderId: number, { maxLines, products }: SeedSize): OrderDetailRow[] {
  const count = random.integer(1, maxLines);
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(random.integer(1, products));
  return [...chosen].map((productId) => ({ orderId, productId, quantity: random.integer(1, 60) }));
}

function day(number: number): string {
  return new Date(FIRST_DAY + number * DAY_MS).toISOString().slice(0, 10);
}

function postalCode(random: Random, shape: string): string {
  const letter = () => String.fromCodePoint(65 + random.integer(0, 25));
  return shape.replaceAll("9", () => String(random.integer(0, 9))).replaceAll(/A/g, letter);
}
