/** Gives schemas a place of their own in the OpenAPI document. */

type Json = Record<string, unknown>;

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
