/** The OpenAPI document, made from the schemas that check the requests. */
import swagger from "@fastify/swagger";
import { extractComponents } from "./components.ts";
import type { Api } from "./deps.ts";

/** Marks a route that needs no token in the document. */
export const PUBLIC = { security: [] };

/** Registers the plugin that collects the routes' schemas. Call it before you register the routes. */
export async function describeApi(app: Api, version: string): Promise<void> {
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
    transform: ({ schema, url, route }) => {
      const scope = route.config?.scope;
      const described = scope === undefined ? schema : { ...schema, "x-scope": scope };
      return { schema: described, url };
    },
    transformObject: (document) => {
      const openapi = "openapiObject" in document ? document.openapiObject : {};
      const { paths, schemas } = extractComponents({ ...openapi.paths });
      return { ...openapi, paths, components: { ...openapi.components, schemas } } as typeof openapi;
    },
  });
}
