/** `http_options` of a service or of one of its ports: how the app is spoken to, and which headers its responses have. */
import type { ServiceConfig } from "@hibernaut/client";
import { type ResponseHeaders, responseHeadersRefusal } from "@hibernaut/domain/response-headers";
import type { Section } from "./section.ts";

export type HttpOptions = NonNullable<ServiceConfig["http_options"]>;

/** Returns what the table says. Headers are also left out if they are wrong and reported. */
export function readHttpOptions(section: Section): HttpOptions {
  const options = section.section("http_options");
  if (options === undefined) return {};
  const h2Backend = options.boolean("h2_backend");
  const response = options.section("response");
  const table = response?.section("headers");
  response?.ignored("pristine", "Not supported: responses always say that they came through the proxy.");
  response?.finish();
  options.ignored(
    ["compress", "headers_read_timeout", "idle_timeout", "replay_cache"],
    "Not supported: the proxy does not have this option.",
  );
  options.finish();
  const headers = table && readHeaders(table);
  return { ...(h2Backend !== undefined && { h2_backend: h2Backend }), ...(headers && { response: { headers } }) };
}

function readHeaders(section: Section): ResponseHeaders | undefined {
  const headers: ResponseHeaders = {};
  for (const name of section.keys) {
    const value = section.raw(name) === false ? false : section.strings(name);
    if (value === undefined) return undefined;
    headers[name] = value !== false && value.length === 1 ? (value[0] ?? "") : value;
  }
  const refusal = responseHeadersRefusal(headers);
  if (refusal !== undefined) return section.error(refusal.name, refusal.message);
  return section.keys.length === 0 ? undefined : headers;
}
