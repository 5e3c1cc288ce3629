/** Headers that clients have added to a sandbox's HTTPS requests. Pure. */
import { isEgressName } from "@hibernaut/domain/egress";
import { Refusal } from "../failure.ts";

/** Headers by name in lower case, by the name that their requests are for, in lower case. */
export type AddedHeaders = Record<string, Record<string, string>>;

/** Names of one sandbox. */
const MOST_NAMES = 64;
/** All headers for one name, in bytes: servers accept heads of 8 KB and more, and the request has headers of its own. */
const MOST_BYTES = 6_144;
/** All of them, in bytes: they are in the sandbox's record, which is read and written whole. */
const MOST_BYTES_IN_ALL = 32_768;
const HEADER = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
/** Visible characters, and blanks between them. */
const VALUE = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/;
/** What makes a request what it is, or belongs to its connection. */
const FIXED: ReadonlySet<string> = new Set([
  ...["host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"],
  ...["proxy-connection", "proxy-authorization"],
]);

/**
 * Reads what a client sends as `network.rules`: by name a list of rules, of which later ones count. Throws a {@link Refusal}
 * for what cannot be. Undefined when it is empty.
 */
export function addedHeadersIn(value: unknown): AddedHeaders | undefined {
  if (value === undefined || value === null) return undefined;
  const entries = Object.entries(objectOf(value, "network.rules"));
  if (entries.length > MOST_NAMES)
    throw new Refusal(400, `network.rules has more than ${MOST_NAMES} names. Use \`*.example.com\` for several.`);
  const added = entries.flatMap(([name, rules]) => {
    const headers = headersIn(rules, `network.rules['${name.slice(0, 80)}']`);
    if (!isEgressName(name))
      throw new Refusal(
        400,
        `network.rules: '${name.slice(0, 80)}' is not a name such as api.example.com or *.example.com. Headers are added to HTTPS requests, whose names are certain.`,
      );
    return Object.keys(headers).length === 0 ? [] : [[name.toLowerCase(), headers] as const];
  });
  if (Buffer.byteLength(JSON.stringify(added)) > MOST_BYTES_IN_ALL)
    throw new Refusal(400, `network.rules have more than ${MOST_BYTES_IN_ALL} bytes. Add headers for fewer names.`);
  return added.length === 0 ? undefined : Object.fromEntries(added);
}

function headersIn(rules: unknown, field: string): Record<string, string> {
  if (!Array.isArray(rules)) throw new Refusal(400, `${field} is not a list of rules.`);
  const headers = new Map<string, string>();
  for (const [index, rule] of rules.entries()) {
    const { transform } = objectOf(rule, `${field}[${index}]`);
    if (transform === undefined || transform === null) continue;
    const { headers: own = {} } = objectOf(transform, `${field}[${index}].transform`);
    for (const [header, value] of Object.entries(objectOf(own, `${field}[${index}].transform.headers`)))
      headers.set(headerOf(header, field), valueOf(value, `${field}: the value of ${header.slice(0, 80)}`));
  }
  const found = Object.fromEntries(headers);
  if (Buffer.byteLength(JSON.stringify(found)) > MOST_BYTES)
    throw new Refusal(400, `${field}: its headers have more than ${MOST_BYTES} bytes, which many servers refuse.`);
  return found;
}

function headerOf(header: string, field: string): string {
  const name = header.toLowerCase();
  if (HEADER.test(header) && !FIXED.has(name)) return name;
  throw new Refusal(400, `${field}: '${header.slice(0, 80)}' is not a header that can be added.`);
}

function valueOf(value: unknown, what: string): string {
  if (typeof value !== "string" || !VALUE.test(value))
    throw new Refusal(400, `${what} is not text of visible ASCII characters, with blanks between them at most.`);
  if (value.includes("${e2b.identity."))
    throw new Refusal(501, `${what} is a workload identity, which there is none of on a server of your own.`);
  return value;
}

function objectOf(value: unknown, field: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Refusal(400, `${field} is not an object.`);
}
