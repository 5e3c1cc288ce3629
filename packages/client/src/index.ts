/** The typed client of Hibernaut's HTTP API. Its only dependency, `ws`, is loaded by the first streamed command. */

export { HibernautClient } from "./client.ts";
export { COLD_REASONS } from "./cold-reasons.ts";
export { ApiError, type ApiErrorParts } from "./error.ts";
export type { EventsOptions, StreamEntry, StreamGap, StreamMissing, StreamPosition } from "./events.ts";
export type { ExecOptions, ExecSession } from "./exec.ts";
export type { ExecExit } from "./exec-channels.ts";
export type * from "./options.ts";
export type { CallOptions, ClientCertificate, ClientOptions, ListOptions } from "./transport.ts";
export type * from "./types.ts";
