import type { PostgresSettings } from "../../src/postgres/settings.ts";
import type { NewSupplier, Storage } from "../../src/storage.ts";
import { openPostgresStorage } from "../../src/postgres/index.ts";
import { type Access, ask, type TestServer } from "./server.ts";
import { startCutter } from "./cutter.ts";

export interface Opened {
  storage: Storage;
  /** Connects to the server directly, without a cutter. */
  access: Access;
  /** Why connections were dropped. */
  faults: unknown[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Opens a storage on a new database. */
export async function openStorage(server: TestServer, settings: Partial<PostgresSettings> = {}): Promise<Opened> {
  const access = await server.newDatabase();
  const faults: unknown[] = [];
  const onFault = (error: unknown) => void faults.push(error);
  const storage = await openPostgresStorage({ ...access, onFault, ...settings });
  return { storage, access, faults, [Symbol.asyncDispose]: () => storage.close() };
}

/** Opens a storage on a new database through a cutter. */
export async function openCuttable(server: TestServer, settings: Partial<PostgresSettings> = {}) {
  const cutter = await startCutter(server.port);
  const opened = await openStorage(server, { port: cutter.port, ...settings });
  const dispose = async () => {
    cutter.reset();
    await opened.storage.close();
    await cutter.close();
  };
  return { ...opened, cutter, [Symbol.asyncDispose]: dispose };
}

let made = 0;
/** Makes suppliers with unique names. */
export function newSuppliers(count = 1): NewSupplier[] {
  return Array.from({ length: count }, () => ({ companyName: `supplier ${made++}`, country: "NO" }));
}

/** Counts how often each name exists. */
export async function countNames(access: Access, names: string[]): Promise<Map<string, number>> {
  const rows = await ask(
    access,
    `SELECT "companyName" AS name, count(*)::int AS count FROM suppliers WHERE "companyName" = ANY($1) GROUP BY 1`,
    [names],
  );
  return new Map(rows.map(({ name, count }) => [name as string, count as number]));
}

/** Makes two products, and an order with a line for each. */
export async function addOrder({ storage, access }: Opened): Promise<{ orderId: number; productIds: number[] }> {
  const [supplier] = await storage.createSuppliers(newSuppliers());
  const base = { supplierId: supplier?.id ?? 0, unitPrice: "18.0000", unitsInStock: 3 };
  const products = await storage.createProducts([
    { ...base, name: "Chai" },
    { ...base, name: "Chang", unitPrice: "0.0001" },
  ]);
  const [order] = await ask(
    access,
    `INSERT INTO orders ("orderDate", "shipAddress", "shipCountry") VALUES ('2024-02-29', 'Street 1', 'NO') RETURNING id`,
  );
  const orderId = order?.["id"] as number;
  const productIds = products.map((product) => product.id);
  await ask(access, `INSERT INTO order_details SELECT $1, unnest($2::int[]), 2`, [orderId, productIds]);
  return { orderId, productIds };
}
