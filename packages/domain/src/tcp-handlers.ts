/** What the proxy does with a TCP connection before it reaches the app, in Fly's words: pure rules. */

/**
 * `tls`: ends TLS. `pg_tls`: the same for PostgreSQL, whose clients ask for TLS first. `tls_passthrough`: reads only the
 * hostname, and the app ends TLS. `proxy_proto`: tells the app about the client.
 */
export const TCP_HANDLERS = ["tls", "pg_tls", "tls_passthrough", "proxy_proto"] as const;

export type TcpHandler = (typeof TCP_HANDLERS)[number];

/** Versions of the PROXY protocol. */
export const PROXY_PROTOCOL_VERSIONS = ["v1", "v2"] as const;

export type ProxyProtocolVersion = (typeof PROXY_PROTOCOL_VERSIONS)[number];

/** How a port handles TLS, of which it can do one thing. */
export type TlsHandler = Exclude<TcpHandler, "proxy_proto">;

/** Returns what the port does with TLS. Undefined if it takes every connection as it is. */
export function tlsHandlerOf(handlers: readonly TcpHandler[]): TlsHandler | undefined {
  return handlers.find((handler) => handler !== "proxy_proto");
}

/** Returns why the port cannot have these handlers, or these options. */
export function handlersRefusal(handlers: readonly TcpHandler[], hasProxyOptions: boolean): string | undefined {
  const tls = handlers.filter((handler) => handler !== "proxy_proto");
  if (tls.length > 1) return `A port has one handler for TLS. Use one of: ${tls.join(", ")}.`;
  if (hasProxyOptions && !handlers.includes("proxy_proto"))
    return "`proxy_proto_options` needs the handler `proxy_proto`. Add it, or remove the options.";
  return undefined;
}
