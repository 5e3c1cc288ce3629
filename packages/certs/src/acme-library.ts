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
