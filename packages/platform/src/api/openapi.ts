/** The OpenAPI document, made from the schemas that check the requests. */
import swagger from "@fastify/swagger";
import type { Api } from "./deps.ts";
import { COMPONENTS } from "./schemas.ts";

/** Marks a route that needs no token in the document. */
export const PUBLIC = { security: [] };

/** Registers the collector; call it before the routes. */
export async function describeApi(app: Api, version: string): Promise<void> {
  for (const [name, schema] of Object.entries(COMPONENTS)) app.addSchema({ ...schema, $id: name });
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Hibernaut",
        version,
        description: "Machines that sleep. Times are RFC 3339; errors are `{error, message, details, request_id}`.",
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      tags: [
        { name: "apps" },
        { name: "machines" },
        { name: "inside" },
        { name: "images" },
        { name: "tokens" },
        { name: "platform" },
      ],
      components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
      security: [{ token: [] }],
    },
    refResolver: { buildLocalReference: (json, _uri, _fragment, index) => String(json.$id ?? `def-${index}`) },
  });
}
