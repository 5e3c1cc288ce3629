/** Turns what a schema refuses into sentences that name the place and the way out. */
import { HibernautError } from "@hibernaut/domain/errors";
import { nearest } from "@hibernaut/lib/nearest";

/** The part of a request that was refused, as Fastify calls it. */
type RequestPart = "body" | "querystring" | "params" | "headers";

/** One refusal of the validator (TypeBox's, in the shape of Ajv's). */
export interface Refusal {
  keyword: string;
  instancePath: string;
  schemaPath: string;
  params: Record<string, unknown>;
  message?: string | undefined;
}

/** The keywords of JSON Schema that are looked at here. */
interface Schema {
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: (Schema & { const?: unknown; type?: string })[];
}

interface Problem {
  path: string;
  message: string;
  nearest?: string;
  known?: string[];
}

const ROOT: Record<RequestPart, string> = {
  body: "The request body",
  querystring: "The query",
  params: "The path",
  headers: "The headers",
};

/** Enough to repair a request; more would only repeat what one wrong brace broke. */
const MAX_PROBLEMS = 5;

/** The `invalid_argument` error for a request part that its schema refused. */
export function explainRefusals(refusals: readonly Refusal[], schema: unknown, part: RequestPart): HibernautError {
  const problems = refusals
    .map((refusal) => explain(refusal, schema as Schema, part))
    .filter((problem) => problem !== undefined)
    .filter((problem, index, all) => all.findIndex(({ message }) => message === problem.message) === index)
    .slice(0, MAX_PROBLEMS);
  const message = problems.map((problem) => problem.message).join(" ") || `${ROOT[part]} is not valid.`;
  return new HibernautError("invalid_argument", message, { in: part, problems });
}

function explain(refusal: Refusal, schema: Schema, part: RequestPart): Problem | undefined {
  const keys = pointerKeys(refusal.instancePath);
  const path = pathText(keys);
  const subject = path === "" ? ROOT[part] : `\`${path}\``;
  switch (refusal.keyword) {
    case "boolean":
      return unknownKey(keys, schema);
    case "additionalProperties": // said by "boolean", key by key
      return undefined;
    case "const": // said by "anyOf", all choices at once
      return refusal.schemaPath.includes("/anyOf/") ? undefined : { path, message: `${subject} ${refusal.message}.` };
    case "anyOf":
      return { path, message: `${subject} must be ${choices(schemaAt(schema, keys))}.` };
    case "required":
      return missing(refusal, keys, subject);
    case "type":
      // The alternatives of a choice refuse one by one; "anyOf" says it once.
      return refusal.schemaPath.includes("/anyOf/")
        ? undefined
        : { path, message: `${subject} must be ${typeText(refusal.params.type)}.` };
    default:
      return { path, message: `${subject} ${refusal.message ?? "is not valid"}.` };
  }
}

function unknownKey(keys: string[], schema: Schema): Problem {
  const key = keys.at(-1) ?? "";
  const parent = schemaAt(schema, keys.slice(0, -1));
  const path = pathText(keys);
  const [pattern] = Object.keys(parent?.patternProperties ?? {});
  const known = Object.keys(parent?.properties ?? {});
  if (pattern !== undefined && known.length === 0)
    return { path, message: `\`${path}\` is not a valid key: it must match ${pattern}.` };
  const near = nearest(key, known);
  if (near !== undefined)
    return { path, nearest: near, known, message: `Unknown key \`${path}\`; did you mean \`${near}\`?` };
  const home = elsewhere(schema, key);
  if (home !== undefined)
    return { path, nearest: home, known, message: `Unknown key \`${path}\`; did you mean \`${home}\`?` };
  const also = pattern === undefined ? [] : [`what matches ${pattern}`];
  const list = [...known.map((name) => `\`${name}\``), ...also].join(", ");
  return {
    path,
    known,
    message: `Unknown key \`${path}\`; ${list ? `known here: ${list}` : "nothing is expected here"}.`,
  };
}

/** The place of a key that is right in another place, e.g. `config.guest.memory_mb`. */
function elsewhere(schema: Schema, key: string): string | undefined {
  const places = new Map(allKeys(schema).map((path) => [path.at(-1) ?? "", pathText(path)]));
  const near = nearest(key, [...places.keys()]);
  return near === undefined ? undefined : places.get(near);
}

function allKeys(schema: Schema, path: string[] = []): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const here = [...path, name];
    return [here, ...allKeys(child, here), ...(child.items ? allKeys(child.items, [...here, "0"]) : [])];
  });
}

function missing(refusal: Refusal, keys: string[], subject: string): Problem {
  const names = refusal.params.requiredProperties;
  const paths = (Array.isArray(names) ? names : []).map((name) => pathText([...keys, String(name)]));
  if (paths.length === 0) return { path: pathText(keys), message: `${subject} ${refusal.message}.` };
  return {
    path: paths[0] ?? "",
    message: `${paths.map((path) => `\`${path}\``).join(", ")} ${paths.length === 1 ? "is" : "are"} missing.`,
  };
}

function choices(schema: Schema | undefined): string {
  const words = (schema?.anyOf ?? []).map((choice) =>
    choice.const === undefined ? typeText(choice.type) : `\`${String(choice.const)}\``,
  );
  return words.length > 1 ? `one of ${words.join(", ")}` : (words[0] ?? "another value");
}

function typeText(type: unknown): string {
  const word = String(type);
  return `${/^[aeiou]/.test(word) ? "an" : "a"} ${word}`;
}

function schemaAt(schema: Schema, keys: readonly string[]): Schema | undefined {
  return keys.reduce<Schema | undefined>((at, key) => {
    if (at?.items && /^\d+$/.test(key)) return at.items;
    const known = at?.properties;
    return known && Object.hasOwn(known, key) ? known[key] : Object.values(at?.patternProperties ?? {})[0];
  }, schema);
}

/** The keys of a JSON pointer; a sender's absurdly long key is cut, so that the reply stays readable. */
function pointerKeys(pointer: string): string[] {
  const keys = pointer.split("/").slice(1);
  return keys
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((key) => (key.length > 100 ? `${key.slice(0, 100)}…` : key));
}

/** `config.services[0].internal_port` */
function pathText(keys: readonly string[]): string {
  return keys.map((key, index) => (/^\d+$/.test(key) ? `[${key}]` : `${index === 0 ? "" : "."}${key}`)).join("");
}
