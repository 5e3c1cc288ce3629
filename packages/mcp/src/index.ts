/** What other packages may use. */
export type { About, Place } from "./contract.ts";
export { type HttpOptions, serveHttp } from "./http/door.ts";
export { serveStdio } from "./stdio.ts";
