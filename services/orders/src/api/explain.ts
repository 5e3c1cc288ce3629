/** Turns the errors of a schema into a list of invalid fields. */
import { PRICE_PATTERN } from "../decimal.ts";
import { type FieldError, Problem } from "./problems.ts";
import { TEXT_PATTERN } from "./schemas.ts";

/** An error of the validator (TypeBox's, in the shape of Ajv's). */
export interface Refusal {
  keyword: string;
  instancePath: string;
  params: Record<string, unknown>;
  message?: string | undefined;
}

/** An unknown key is quoted up to this length. */
const MAX_POINTER = 120;
/** How many fields the sentence for people names. The list has all. */
const IN_DETAIL = 3;

const PARTS: Record<string, FieldError["in"]> = { body: "body", querystring: "query", params: "path" };

const PATTERNS: Record<string, string> = {
  [PRICE_PATTERN]: "must be a decimal from 0 to 999999.9999 with at most four decimals",
  [TEXT_PATTERN]: "must not contain NUL characters or halves of surrogate pairs",
};

/** Returns the problem for a part of a request that does not match its schema. */
export function explainRefusals(refusals: readonly Refusal[], part: string): Problem {
  const where = PARTS[part] ?? "body";
  const errors = new Map<string, FieldError>();
  for (const refusal of refusals) {
    for (const { pointer, message } of explain(refusal)) {
      const shown = pointer.length > MAX_POINTER ? `${pointer.slice(0, MAX_POINTER)}…` : pointer;
      if (!errors.has(shown)) errors.set(shown, { in: where, pointer: shown.toWellFormed(), message });
    }
  }
  const all = [...errors.values()];
  const first = all.slice(0, IN_DETAIL).map(({ pointer, message }) => `${pointer || `the ${where}`} ${message}`);
  const more = all.length > IN_DETAIL ? `; and ${all.length - IN_DETAIL} more` : "";
  return new Problem("invalid_input", `Not acceptable: ${first.join("; ")}${more}.`, { errors: all });
}

function explain({ keyword, instancePath, params, message }: Refusal): Omit<FieldError, "in">[] {
  const here = (sentence: string) => [{ pointer: instancePath, message: sentence }];
  switch (keyword) {
    case "boolean":
      return here("is not known here");
    case "additionalProperties": // said by "boolean", key by key
      return [];
    case "required": {
      const names = Array.isArray(params.requiredProperties) ? params.requiredProperties : [];
      return names.map((name) => ({ pointer: `${instancePath}/${name}`, message: "is missing" }));
    }
    case "type":
      return here(`must be of type ${[params.type].flat().join(" or ")}`);
    case "const":
      return here(`must be ${JSON.stringify(params.allowedValue)}`);
    case "pattern":
      return here(PATTERNS[String(params.pattern)] ?? "is not valid");
    default:
      return here(message ?? "is not valid");
  }
}
