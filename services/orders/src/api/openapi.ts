/** Generates the OpenAPI document from the schemas that check the requests. */
import swagger from "@fastify/swagger";
import type { Api } from "./deps.ts";
import { COMPONENTS } from "./schemas.ts";

/** Registers the generator. Call this before the routes are registered. */
export async function describeApi(app: Api): Promise<void> {
  for (const [name, schema] of Object.entries(COMPONENTS)) app.addSchema({ ...schema, $id: name });
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Orders",
        version: "1.0.0",
        description: "Suppliers, their products, and orders. Prices are exact decimals in strings.",
      },
      tags: [{ name: "suppliers" }, { name: "products" }, { name: "orders" }, { name: "service" }],
    },
    refResolver: { buildLocalReference: (json, _uri, _fragment, index) => String(json.$id ?? `def-${index}`) },
  });
}
