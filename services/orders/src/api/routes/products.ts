/** Products: create several, get one, search. */
import { canonicalPrice } from "../../decimal.ts";
import type { Storage } from "../../storage.ts";
import type { Api } from "../deps.ts";
import { noSuch } from "../problems.ts";
import {
  IdParams,
  NewProducts,
  NoQuery,
  ProductList,
  ProductPage,
  ProductQuery,
  ProductReply,
  replies,
  SearchQuery,
} from "../schemas.ts";

const tags = ["products"];

const DEFAULT_LIMIT = 20;

/** `POST /products`, `GET /products/:id` and `GET /products`. */
export function productRoutes(app: Api, storage: Storage): void {
  app.post(
    "/products",
    {
      schema: {
        tags,
        summary: "Create products, all or none",
        querystring: NoQuery,
        body: NewProducts,
        response: replies(201, ProductList),
      },
    },
    async (request, reply) => {
      const rows = request.body.map((row) => ({ ...row, unitPrice: canonicalPrice(row.unitPrice) }));
      return reply.code(201).send(await storage.createProducts(rows));
    },
  );

  app.get(
    "/products/:id",
    {
      schema: {
        tags,
        summary: "A product and its supplier",
        params: IdParams,
        querystring: ProductQuery,
        response: replies(200, ProductReply),
      },
    },
    async ({ params: { id }, query: { wrap } }) => {
      const found = await storage.getProduct(id);
      if (!found) throw noSuch("product", id);
      return wrap === "array" ? [found] : found;
    },
  );

  app.get(
    "/products",
    {
      schema: {
        tags,
        summary: "Find products whose name contains a text, sorted by id",
        querystring: SearchQuery,
        response: replies(200, ProductPage),
      },
    },
    async ({ query: { name = "", offset = 0, limit = DEFAULT_LIMIT } }) =>
      storage.findProducts({ name, offset, limit }),
  );
}
