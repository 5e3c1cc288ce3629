/** Messages of the services as JSON schemas, from which wild ones are made. */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Random } from "../../api/test/random.ts";
import type { Schema } from "../../api/test/wild-values.ts";
import type { Tenant } from "./tenant.ts";

/** How deep messages become. */
const MAX_DEPTH = 4;

/** A message, with one field of each `oneof`. */
export function schemaOf({ members }: DescMessage, of: Tenant, random: Random, depth = 0): Schema {
  const fields = members.map((member) => (member.kind === "oneof" ? random.pick(member.fields) : member));
  const properties = fields.map((field) => [field.jsonName, fieldSchema(field, of, random, depth)] as const);
  return { type: "object", properties: Object.fromEntries(properties), required: fields.map((one) => one.jsonName) };
}

function fieldSchema(field: DescField, of: Tenant, random: Random, depth: number): Schema {
  if (field.fieldKind === "map") return { type: "object", patternProperties: { "": { type: "string" } } };
  const one = field.message && depth < MAX_DEPTH ? schemaOf(field.message, of, random, depth + 1) : plain(field, of);
  return field.fieldKind === "list" ? { type: "array", items: one } : one;
}

function plain({ name, enum: words, scalar }: DescField, of: Tenant): Schema {
  if (words !== undefined) return { enum: words.values.map((value) => value.name) };
  if (scalar === ScalarType.BOOL) return { type: "boolean" };
  if (scalar === ScalarType.BYTES) return { enum: ["eA==", "!", "A".repeat(100_000)] };
  if (scalar !== ScalarType.STRING) return { type: "integer", minimum: 0, maximum: 2 ** 32 - 1 };
  const meant: Record<string, unknown[]> = { tag: [of.program], watcher_id: [of.watcher], cmd: ["stay", "true"] };
  return meant[name] === undefined ? { type: "string" } : { enum: meant[name] };
}
