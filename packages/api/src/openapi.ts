/** The OpenAPI document, made from the schemas that check the requests. */
import swagger from "@fastify/swagger";
import type { Api } from "./deps.ts";

type Json = Record<string, unknown>;

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
        { name: "templates" },
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

/**
 * Returns the paths with a reference in place of every schema that has a `title`, and those schemas by title.
 * Throws when two different schemas have the same title.
 */
export function extractComponents(paths: Json): { paths: Json; schemas: Json } {
  const schemas: Json = {};
  const extract = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(extract);
    if (typeof value !== "object" || value === null) return value;
    const { title, ...rest } = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, extract(inner)]));
    // A property may be called `title`; only a schema's own is text.
    if (typeof title !== "string") return title === undefined ? rest : { title, ...rest };
    const known = schemas[title];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(rest))
      throw new Error(`Two different schemas have the title ${title}.`);
    schemas[title] = rest;
    return { $ref: `#/components/schemas/${title}` };
  };
  const extracted = extract(paths) as Json;
  return { paths: extracted, schemas: Object.fromEntries(Object.entries(schemas).sort(byName)) };
}

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}
