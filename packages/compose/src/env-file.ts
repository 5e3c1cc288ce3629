/** `.env` and `env_file`, as compose reads them. Pure. */
import { parseEnv } from "node:util";
import { interpolate, type Variables } from "./interpolate.ts";

/** The name of a variable, and the quote that its value begins with, if any. */
const ASSIGNMENT = /^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(')?/gm;

/**
 * Returns the variables of a file. Their values may use those before them and those of `outer`, except in single quotes. Throws
 * as {@link interpolate} does.
 */
export function readEnvFile(text: string, outer: Variables): Record<string, string> {
  // The parser sorts by name.
  const values = parseEnv(text) as Record<string, string>;
  const variables: Record<string, string> = {};
  const before: Variables = (name) => (Object.hasOwn(variables, name) ? variables[name] : outer(name));
  for (const [, name = "", quote] of text.matchAll(ASSIGNMENT)) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value !== undefined) variables[name] = quote === undefined ? interpolate(value, before).text : value;
  }
  return variables;
}
