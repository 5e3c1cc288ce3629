/**
 * Checks requests against their schemas. Bodies are not converted; text in a query or a path becomes
 * a number only if it is written exactly like one (`01`, `1.5` and `1e3` are not).
 */
import type { FastifySchemaCompiler } from "fastify";
import type { TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { Settings } from "typebox/system";
import type { Refusal } from "./explain.ts";

/** Enough to list every field of the largest batch. */
const MAX_REFUSALS = 5000;
Settings.Set({ maxErrors: MAX_REFUSALS });

/** Compiles TypeBox schemas to validators for Fastify, each at the first request that needs it. */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  let compiled: Validator | undefined;
  const numbers = integerProperties(schema);
  return (received: unknown) => {
    compiled ??= Compile(schema);
    if (isTooLong(received, schema)) return { error: [tooLong(schema)] as unknown as Error };
    const value = httpPart === "body" ? received : convert(received as Record<string, unknown>, numbers);
    if (compiled.Check(value)) return { value };
    return { error: compiled.Errors(value) as unknown as Error };
  };
};

/** Refuses millions of elements because of their number, before checking each of them. */
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
