/** Connects to the proxy of another host. */
import { connect, type TLSSocket } from "node:tls";
import type { PeerTarget } from "../contract.ts";
import { type MoreOptions, opened } from "./connect.ts";

/** The kernel asks this often whether the other host is still there: one that lost its power does not say so. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Resolves with a connection on which both hosts have shown their certificates. Rejects when that has not happened within
 * `timeoutMs`, and with the signal's reason.
 */
export async function connectPeer(
  { host, port, tls }: PeerTarget,
  { timeoutMs, signal, more }: { timeoutMs: number; signal: AbortSignal; more?: MoreOptions | undefined },
): Promise<TLSSocket> {
  // Node takes `allowHalfOpen` too, as a tunnel needs it; its types do not know that.
  const options = { ...tls, ...more, host, port, allowHalfOpen: true };
  const place = `${host}:${port}`;
  const late = `${place} did not answer in time.`;
  const socket = await opened(connect(options), "secureConnect", { place, late, timeoutMs, signal });
  return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
}
