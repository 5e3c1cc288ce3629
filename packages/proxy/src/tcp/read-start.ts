/** Reads what a connection begins with, and leaves the rest in it. */
import type { Socket } from "node:net";
import { ProxyRefusal } from "../contract.ts";
import { readProxyHeader } from "../proxy-protocol.ts";

/** What the first bytes are. `more` waits for the next ones. The first `length` bytes, if any, do not stay in the socket. */
type Reading = { kind: string; length?: number };

/**
 * Resolves with what `read` makes of the first bytes; the socket is paused then. Rejects with 499 if the client leaves
 * before that, and with the signal's reason once it aborts.
 *
 * @param read is given all bytes so far. Must be bounded: it decides when there are too many
 */
export function readStart<T extends Reading>(
  socket: Socket,
  read: (bytes: Buffer) => T,
  signal: AbortSignal,
): Promise<Exclude<T, { kind: "more" }>> {
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0);
    const stop = () => {
      socket.off("data", take).off("end", gone).off("close", gone).pause();
      signal.removeEventListener("abort", abort);
    };
    const fail = (error: Error) => {
      stop();
      reject(error);
    };
    const gone = () => fail(new ProxyRefusal(499, "client_gone", "The client left."));
    const abort = () => fail(signal.reason as Error);
    const take = (piece: Buffer) => {
      bytes = bytes.length === 0 ? piece : Buffer.concat([bytes, piece]);
      const reading = read(bytes);
      if (reading.kind === "more") return;
      stop();
      // At once: the end of the stream may be the next thing that happens.
      const rest = bytes.subarray(reading.length ?? 0);
      if (rest.length > 0) socket.unshift(rest);
      resolve(reading as Exclude<T, { kind: "more" }>);
    };
    if (signal.aborted) return reject(signal.reason as Error);
    if (socket.destroyed || socket.readableEnded) return gone();
    signal.addEventListener("abort", abort, { once: true });
    socket.on("data", take).once("end", gone).once("close", gone).resume();
  });
}

/** Reads the header of the PROXY protocol with which a balancer's connection begins. Refuses anything else. */
export async function readBalancersHeader(socket: Socket, signal: AbortSignal) {
  const header = await readStart(socket, readProxyHeader, signal);
  if (header.kind === "bad") throw new ProxyRefusal(400, "proxy_header_invalid", header.reason);
  return header;
}
