/** Requests that show a certificate. Node's own `fetch` cannot, and pages of a browser have no say in it. */
import type { ClientOptions } from "./transport.ts";

/** Returns options whose requests show the client's certificate, if there is one. Its code is loaded by the first of them. */
export function withCertificate(options: ClientOptions): ClientOptions {
  const { apiUrl, clientCertificate, fetch: given } = options;
  // What is not an address is refused with the first request.
  if (clientCertificate === undefined || given !== undefined || !/^https:/i.test(apiUrl)) return options;
  let certified: Promise<typeof fetch> | undefined;
  return {
    ...options,
    async fetch(input, init) {
      certified ??= import("./certified-fetch.ts").then(({ certifiedFetch }) => certifiedFetch(clientCertificate));
      return (await certified)(input, init);
    },
  };
}
