/** Orders: get one with its totals, delete one. */
import { Type } from "typebox";
import type { Storage } from "../../storage.ts";
import type { Api } from "../deps.ts";
import { noSuch } from "../problems.ts";
import { IdParams, NoQuery, OrderReply, replies } from "../schemas.ts";

const tags = ["orders"];

/** `GET /orders/:id` and `DELETE /orders/:id`. */
export function orderRoutes(app: Api, storage: Storage): void {
  app.get(
    "/orders/:id",
    {
      schema: {
        tags,
        summary: "Get an order with its totals",
        params: IdParams,
        querystring: NoQuery,
        response: replies(200, OrderReply),
      },
    },
    async ({ params: { id } }) => {
      const order = await storage.getOrder(id);
      if (!order) throw noSuch("order", id);
      // Exact up to here; this converts to the nearest double.
      return { ...order, totalPrice: Number(order.totalPrice) };
    },
  );

  app.delete(
    "/orders/:id",
    {
      schema: {
        tags,
        summary: "Delete an order and its lines",
        params: IdParams,
        querystring: NoQuery,
        response: replies(204, Type.Null({ description: "The order was deleted." })),
      },
    },
    async ({ params: { id } }, reply) => {
      if (!(await storage.deleteOrder(id))) throw noSuch("order", id);
      return reply.code(204).send(null);
    },
  );
}
