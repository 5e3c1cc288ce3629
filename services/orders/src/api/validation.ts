/**
 * Checks requests against their schemas. Bodies are taken as they are; the text of a query or a path becomes
 * a number only where it reads exactly like one (`01`, `1.5` and `1e3` do not).
 */
import type { FastifySchemaCompiler } from "fastify";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Settings } from "typebox/system";
import type { Refusal } from "./explain.ts";

/** Every field of the largest batch can be named. */
const MAX_REFUSALS = 5000;
Settings.Set({ maxErrors: MAX_REFUSALS });

/** Fastify's validator compiler for TypeBox schemas. */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validator = Compile(schema);
  const numbers = integerProperties(schema);
  return (received: unknown) => {
    if (isTooLong(received, schema)) return { error: [tooLong(schema)] as unknown as Error };
    const value = httpPart === "body" ? received : convert(received as Record<string, unknown>, numbers);
    if (validator.Check(value)) return { value };
    return { error: validator.Errors(value) as unknown as Error };
  };
};

/** Millions of elements are refused for their number, before anyone looks at each. */
function isTooLong(value: unknown, { maxItems }: { maxItems?: number }): boolean {
  return maxItems !== undefined && Array.isArray(value) && value.length > maxItems;
}

function tooLong({ maxItems }: { maxItems?: number }): Refusal {
  const params = { limit: maxItems };
  return { keyword: "maxItems", instancePath: "", params, message: `must not have more than ${maxItems} items` };
}

function integerProperties(schema: TSchema): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown }> };
  return Object.keys(properties).filter((name) => properties[name]?.type === "integer");
}

function convert(given: Record<string, unknown>, numbers: string[]): Record<string, unknown> {
  if (numbers.length === 0) return given;
  const converted = { ...given };
  for (const name of numbers) {
    const text = converted[name];
    if (typeof text === "string" && /^-?(0|[1-9]\d{0,14})$/.test(text)) converted[name] = Number(text);
  }
  return converted;
}
