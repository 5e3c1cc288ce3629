/** The library that speaks ACME. It is loaded with the first order: a platform without certificates does without it. */
import type * as acme from "acme-client";
import { faultOf, responseFault } from "./acme-faults.ts";

/** What is used of it. */
export type Library = Pick<typeof acme, "Client" | "axios" | "crypto">;

let loaded: Promise<Library> | undefined;

/** Loads the library once. Its HTTP client throws faults as {@link faultOf} makes them. */
export function loadLibrary(): Promise<Library> {
  // In the bundle, the exports of a CommonJS package are below `default` only.
  loaded ??= import("acme-client").then(({ default: library }) => {
    const { request, response } = library.axios.interceptors;
    // Its own repeat requests for as long as an authority says, deaf to signals, and lose why a connection failed. The
    // manager repeats orders.
    request.clear();
    response.clear();
    response.use(
      (reply) => {
        const fault = responseFault(reply, Date.now());
        if (fault !== undefined) throw fault;
        return reply;
      },
      (error: unknown) => {
        throw faultOf(error);
      },
    );
    return library;
  });
  return loaded;
}

/**
 * Returns the certificate of a TLS-ALPN-01 challenge (RFC 8737) and its key, in PEM: signed by itself, with the answer in an
 * extension. `value` is what the account makes of the challenge's token.
 */
export async function challengeCertificate(hostname: string, value: string): Promise<string> {
  const { crypto } = await loadLibrary();
  // Of the authorization, the library takes only the name.
  const authorization = { identifier: { type: "dns", value: hostname } } as Parameters<
    typeof crypto.createAlpnCertificate
  >[0];
  const key = await crypto.createPrivateEcdsaKey();
  const [, certificate] = await crypto.createAlpnCertificate(authorization, value, key);
  return `${String(key)}\n${String(certificate)}`;
}
