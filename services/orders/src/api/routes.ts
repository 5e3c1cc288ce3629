/** The routes of the API. */
import type { Registry } from "prom-client";
import { Type } from "typebox";
import { canonicalPrice } from "../decimal.ts";
import type { Storage } from "../storage.ts";
import type { Api } from "./deps.ts";
import { noSuch } from "./problems.ts";
import {
  Health,
  IdParams,
  NewProducts,
  NewSuppliers,
  NoQuery,
  OrderReply,
  ProductList,
  ProductPage,
  ProductQuery,
  ProductReply,
  replies,
  SearchQuery,
  SupplierChanges,
  SupplierList,
  SupplierReply,
} from "./schemas.ts";

const DEFAULT_LIMIT = 20;

/** What a route takes and returns, and where it is in the document. */
function route<Schema extends object>(tag: string, summary: string, schema: Schema) {
  return { schema: { tags: [tag], summary, ...schema } };
}

/** Registers all routes. */
export function registerRoutes(app: Api, storage: Storage, registry: Registry): void {
  app.post(
    "/suppliers",
    route("suppliers", "Create suppliers, all or none", {
      querystring: NoQuery,
      body: NewSuppliers,
      response: replies(201, SupplierList),
    }),
    async (request, reply) => reply.code(201).send(await storage.createSuppliers(request.body)),
  );

  app.patch(
    "/suppliers/:id",
    route("suppliers", "Change the location of a supplier", {
      params: IdParams,
      querystring: NoQuery,
      body: SupplierChanges,
      response: replies(200, SupplierReply),
    }),
    async ({ params: { id }, body }) => {
      const supplier = await storage.updateSupplier(id, body);
      if (!supplier) throw noSuch("supplier", id);
      return supplier;
    },
  );

  app.post(
    "/products",
    route("products", "Create products, all or none", {
      querystring: NoQuery,
      body: NewProducts,
      response: replies(201, ProductList),
    }),
    async (request, reply) => {
      const rows = request.body.map((row) => ({ ...row, unitPrice: canonicalPrice(row.unitPrice) }));
      return reply.code(201).send(await storage.createProducts(rows));
    },
  );

  app.get(
    "/products/:id",
    route("products", "A product and its supplier", {
      params: IdParams,
      querystring: ProductQuery,
      response: replies(200, ProductReply),
    }),
    async ({ params: { id }, query: { wrap } }) => {
      const found = await storage.getProduct(id);
      if (!found) throw noSuch("product", id);
      return wrap === "array" ? [found] : found;
    },
  );

  app.get(
    "/products",
    route("products", "Find products whose name contains a text, sorted by id", {
      querystring: SearchQuery,
      response: replies(200, ProductPage),
    }),
    async ({ query: { name = "", offset = 0, limit = DEFAULT_LIMIT } }) =>
      storage.findProducts({ name, offset, limit }),
  );

  app.get(
    "/orders/:id",
    route("orders", "Get an order with its totals", {
      params: IdParams,
      querystring: NoQuery,
      response: replies(200, OrderReply),
    }),
    async ({ params: { id } }) => {
      const order = await storage.getOrder(id);
      if (!order) throw noSuch("order", id);
      // Exact up to here; this converts to the nearest double.
      return { ...order, totalPrice: Number(order.totalPrice) };
    },
  );

  app.delete(
    "/orders/:id",
    route("orders", "Delete an order and its lines", {
      params: IdParams,
      querystring: NoQuery,
      response: replies(204, Type.Null({ description: "The order was deleted." })),
    }),
    async ({ params: { id } }, reply) => {
      if (!(await storage.deleteOrder(id))) throw noSuch("order", id);
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/health",
    route("service", "Check whether the database answers", { response: replies(200, Health) }),
    async () => {
      await storage.check();
      return { status: "ok" as const };
    },
  );

  app.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());

  app.get("/metrics", { schema: { hide: true } }, async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  );
}
