/** `.env` and `env_file`, as compose reads them. Pure. */
import { parseEnv } from "node:util";
import { interpolate, type Variables } from "./interpolate.ts";

/**
 * Returns the variables of a file. Their values may use those before them and those of `outer`, except in single quotes. Throws
 * as {@link interpolate} does.
 */
export function readEnvFile(text: string, outer: Variables): Record<string, string> {
  const raw = parseEnv(text) as Record<string, string>;
  const literal = new Set([...text.matchAll(/^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*'/gm)].map(([, name]) => name));
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(raw))
    variables[name] = literal.has(name)
      ? value
      : interpolate(value, (wanted) => (Object.hasOwn(variables, wanted) ? variables[wanted] : outer(wanted))).text;
  return variables;
}
