/** The typed client of Hibernaut's HTTP API. It has no dependencies. */
export { type DestroyOptions, HibernautClient, type WaitOptions } from "./client.ts";
export { ApiError, type ApiErrorParts } from "./error.ts";
export type { CallOptions, ClientOptions } from "./transport.ts";
export type * from "./types.ts";
