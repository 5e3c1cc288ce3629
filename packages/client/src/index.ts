/** The typed client of Hibernaut's HTTP API. Its one dependency, `ws`, is loaded with the first streamed command. */
export {
  type DestroyOptions,
  type DryRunOptions,
  HibernautClient,
  type LogsOptions,
  type PullOptions,
  type WaitOptions,
} from "./client.ts";
export { ApiError, type ApiErrorParts } from "./error.ts";
export type { ExecExit, ExecOptions, ExecSession } from "./exec.ts";
export type { CallOptions, ClientOptions } from "./transport.ts";
export type * from "./types.ts";
