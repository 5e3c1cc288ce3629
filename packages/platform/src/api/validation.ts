/**
 * Checks requests against their schemas. Bodies are taken as they are; the text of a query becomes
 * a number or a truth only where it reads exactly like one ("1.5" is not an integer, "yes" is not a boolean).
 */
import type { FastifySchemaCompiler } from "fastify";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";

/** Fastify's validator compiler for TypeBox schemas. */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validator = Compile(schema);
  const types = propertyTypes(schema);
  return (received: unknown) => {
    const value = httpPart === "body" ? received : convert(received as Record<string, unknown>, types);
    if (validator.Check(value)) return { value };
    return { error: validator.Errors(value) as unknown as Error };
  };
};

function propertyTypes(schema: TSchema): Map<string, unknown> {
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown }> };
  return new Map(Object.entries(properties).map(([name, { type }]) => [name, type]));
}

function convert(query: Record<string, unknown>, types: Map<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, convertText(value, types.get(name))]));
}

function convertText(value: unknown, type: unknown): unknown {
  if (typeof value !== "string") return value;
  if (type === "integer" && /^-?\d{1,15}$/.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}
