/**
 * One suite for every storage: what the service promises, asked over its HTTP API.
 *
 * @example
 * describeStorage("sqlite", { open: openWorld, cascadesUpdates: false });
 */
import { afterAll, beforeAll, describe } from "vitest";
import { describeBatches } from "./behaviour/batches.ts";
import { describeFuzz } from "./behaviour/fuzz.ts";
import { describeIntegrity } from "./behaviour/integrity.ts";
import { describeOrders } from "./behaviour/orders.ts";
import { describePrices } from "./behaviour/prices.ts";
import { describeRefusals } from "./behaviour/refusals.ts";
import { describeSearch } from "./behaviour/search.ts";
import { describeSuppliers } from "./behaviour/suppliers.ts";
import { openTestApp, type StorageWorld, type TestApp, type Variant } from "./behaviour/world.ts";

export type { StorageWorld, TestOrder, Variant } from "./behaviour/world.ts";

/** What a part of the suite gets. Getters, because the world opens after the tests are declared. */
export interface Stage {
  world(): StorageWorld;
  api(): TestApp;
  variant: Variant;
}

/** Declares the whole suite for a variant. Each part has its own empty database. */
export function describeStorage(name: string, variant: Variant): void {
  const parts = {
    suppliers: describeSuppliers,
    batches: describeBatches,
    prices: describePrices,
    search: describeSearch,
    orders: describeOrders,
    integrity: describeIntegrity,
    refusals: describeRefusals,
    fuzz: describeFuzz,
  };
  describe(`orders on ${name}`, () => {
    for (const [part, declare] of Object.entries(parts)) {
      describe(`the ${part}`, () => {
        let world: StorageWorld;
        let api: TestApp;
        beforeAll(async () => {
          world = await variant.open();
          api = await openTestApp(world.storage);
        });
        afterAll(async () => {
          await api?.close();
          await world?.dispose();
        });
        declare({ world: () => world, api: () => api, variant });
      });
    }
  });
}
