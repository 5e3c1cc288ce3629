/** The HTTP engine: a reverse proxy that asks its owner where each request goes. It needs nothing else of Hibernaut. */
export type { AccessEntry, Destination, Lease, LeaseProvider, ReplayOrder, RequestHead } from "../contract.ts";
export { ProxyRefusal } from "../contract.ts";
export { createProxyServer, type ProxyOptions, type ProxyServer, type TlsOptions } from "./server.ts";
