/** The headers that a service sets in what its app answers, or removes. Pure: the CLI checks app files with it, too. */

/** By name: what replaces the app's own headers of this name. `false` removes them. */
export type ResponseHeaders = Record<string, string | string[] | false>;

/** Each is sent with every response. More would hardly fit into what clients accept. */
export const MAX_RESPONSE_HEADERS = 32;
/** The most values of one header. */
export const MAX_RESPONSE_VALUES = 8;
const MAX_VALUE = 1024;
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** They frame the message, or say how it got here: the proxy writes them. */
const RESERVED: ReadonlySet<string> = new Set([
  ...[
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
  ],
  ...["via", "fly-replay"],
]);

/** Returns why one of the headers cannot be set, as a sentence. Undefined if all can. */
export function responseHeadersRefusal(headers: ResponseHeaders): { name: string; message: string } | undefined {
  for (const [name, value] of Object.entries(headers)) {
    const message = headerRefusal(name.toLowerCase(), value === false ? [] : [value].flat());
    if (message !== undefined) return { name, message };
  }
  return undefined;
}

function headerRefusal(key: string, values: readonly string[]): string | undefined {
  if (!NAME.test(key))
    return `"${key.slice(0, 100)}" is not a valid name of a header. Use a name like X-Frame-Options.`;
  if (RESERVED.has(key) || key.startsWith("hibernaut-"))
    return `The header ${key} cannot be set: the proxy writes it itself. Leave it out.`;
  if (values.length > MAX_RESPONSE_VALUES) return `The header ${key} has more than ${MAX_RESPONSE_VALUES} values.`;
  if (values.every((value) => VALUE.test(value) && value.length <= MAX_VALUE)) return undefined;
  return `A value of the header ${key} is not valid. Use up to ${MAX_VALUE} printable ASCII characters.`;
}
