/** The typed client of Hibernaut's HTTP API. Its dependencies are loaded late: `ws` by the first streamed command, `tar-stream` by the first file. */

export { HibernautClient } from "./client.ts";
export { COLD_REASONS } from "./cold-reasons.ts";
export { ApiError, type ApiErrorParts } from "./error.ts";
export type { EventsOptions, StreamEntry, StreamGap, StreamMissing, StreamPosition } from "./events.ts";
export type { ExecOptions, ExecSession } from "./exec.ts";
export type { ExecExit } from "./exec-channels.ts";
export { MachineCommands, MOST_OUTPUT_BYTES, type RunOptions } from "./machine-commands.ts";
export { type FilePart, MachineFiles, MOST_FILE_BYTES } from "./machine-files.ts";
export { MachineHandle, type ReachOptions } from "./machine-handle.ts";
export type * from "./options.ts";
export type { CallOptions, ClientCertificate, ClientOptions, ListOptions } from "./transport.ts";
export type * from "./types.ts";
