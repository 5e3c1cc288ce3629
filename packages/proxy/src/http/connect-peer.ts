/** Connects to the proxy of another host. */
import { connect, type TLSSocket } from "node:tls";
import type { PeerTarget } from "../contract.ts";
import type { MoreOptions } from "./connect.ts";

/** The kernel asks this often whether the other host is still there: one that lost its power does not say so. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Resolves with a connection on which both hosts have shown their certificates. Rejects when that has not happened within
 * `timeoutMs`, and with the signal's reason.
 */
export function connectPeer(
  { host, port, tls }: PeerTarget,
  { timeoutMs, signal, more }: { timeoutMs: number; signal: AbortSignal; more?: MoreOptions | undefined },
): Promise<TLSSocket> {
  return new Promise<TLSSocket>((resolve, reject) => {
    // Node takes `allowHalfOpen` too, as a tunnel needs it; its types do not know that.
    const options = { ...tls, ...more, host, port, allowHalfOpen: true };
    const socket = connect(options);
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.off("secureConnect", connected).off("error", giveUp).off("close", closed);
      settle();
    };
    const giveUp = (error: Error) =>
      end(() => {
        socket.on("error", () => {}).destroy();
        reject(error);
      });
    const connected = () =>
      end(() => {
        socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
        resolve(socket);
      });
    const closed = () => giveUp(new Error(`${host}:${port} closed the connection.`));
    const abort = () => giveUp(signal.reason as Error);
    const timer = setTimeout(() => giveUp(new Error(`${host}:${port} did not answer in time.`)), timeoutMs);
    socket.once("secureConnect", connected).once("error", giveUp).once("close", closed);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
}
