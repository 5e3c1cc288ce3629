/** Who may speak to the server: by the names that a request is sent to and comes from, and by its token. Pure. */
import type { IncomingHttpHeaders } from "node:http";

/** Names that mean this computer. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** Tokens are no longer than this, in characters; whatever is longer is not one. */
const MOST_TOKEN = 512;

/** Why a request is refused. */
export interface Refused {
  status: 401 | 403;
  message: string;
}

/** The hostnames at which a server answers that listens at `host`: a page of another name may have had itself resolved here. */
export function allowedHosts(host: string, others: readonly string[]): ReadonlySet<string> {
  const own = host.includes(":") ? `[${host}]` : host;
  return new Set([...LOOPBACK, own, ...others].map((name) => name.toLowerCase()));
}

/** Returns why the request is refused, or its bearer token. */
export function admit(headers: IncomingHttpHeaders, allowed: ReadonlySet<string>): Refused | { token: string } {
  const { host, origin, authorization = "" } = headers;
  if (!allowed.has(hostnameOf(`http://${host ?? ""}`))) {
    const message =
      "This server does not answer at that name. Use the address that it listens at, or start it with --allow-host.";
    return { status: 403, message };
  }
  if (origin !== undefined && !allowed.has(hostnameOf(origin)))
    return { status: 403, message: "Pages of other origins may not use this server." };
  const [, token = ""] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  if (token !== "" && token.length <= MOST_TOKEN) return { token };
  return {
    status: 401,
    message: "Send an API token as `Authorization: Bearer`. Make one with `hibernaut tokens create`.",
  };
}

/** Empty for what is not a URL. */
function hostnameOf(url: string): string {
  try {
    return new URL(url).hostname.toLowerCase();
  } catch {
    return "";
  }
}
