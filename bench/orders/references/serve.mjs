/** The least that can be between a socket and a query: no validation, no log, no metrics. */
import { once } from "node:events";
import { createServer } from "node:http";
import { parse } from "node:querystring";

/**
 * Serves three queries on any free port, and prints the address in the same form as the service.
 *
 * @param {object} queries
 * @param {(id: number) => unknown} queries.product
 * @param {(id: number) => unknown} queries.order
 * @param {(name: string, limit: number, offset: number) => unknown} queries.search
 */
export async function serve({ product, order, search }) {
  /** @param {string} url @param {import("node:http").ServerResponse} reply */
  const answer = async (url, reply) => {
    const [path = "", query] = url.split("?");
    const [, table, id] = path.split("/");
    const { name = "", limit = 20, offset = 0 } = parse(query ?? "");
    const found = await (table === "orders"
      ? order(Number(id))
      : id === undefined
        ? search(String(name), Number(limit), Number(offset))
        : product(Number(id)));
    reply.setHeader("content-type", "application/json; charset=utf-8");
    reply.end(JSON.stringify(found));
  };
  const server = createServer(({ url = "/" }, reply) => void answer(url, reply));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  console.log(JSON.stringify({ url: `http://127.0.0.1:${address.port}` }));
}
