/** What a client is told when another host has the machines, and is away. Pure. */
import { ProxyRefusal } from "./contract.ts";

/** Roughly the time, in seconds, after which a host that restarts, or a broken connection to it, is back. */
const HOST_AWAY_RETRY_S = 10;

/** All machines that could take the request are on a host that is away. */
export function hostUnreachable(app: string, host: string, cause?: unknown): ProxyRefusal {
  const message = `Host ${host}, which has the machines of app ${app} that could answer, cannot be reached. Try again in a while. See: hibernaut cluster status`;
  return new ProxyRefusal(503, "host_unreachable", message, { cause, retryAfterS: HOST_AWAY_RETRY_S });
}
