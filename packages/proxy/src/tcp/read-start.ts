/** Reads what a connection begins with, and leaves the rest in it. */
import type { Socket } from "node:net";
import { ProxyRefusal } from "../contract.ts";

interface StartOptions<T> {
  /** Makes something of all bytes so far. `more` waits for the next ones. Must be bounded: it decides when there are too many. */
  read(bytes: Buffer): T;
  /** How many of the bytes belong to it. The others stay in the socket. */
  used(reading: T): number;
  signal: AbortSignal;
}

/**
 * Resolves with what `read` makes of the first bytes; the socket is paused then. Rejects with 499 if the client leaves
 * before that, and with the signal's reason once it aborts.
 */
export function readStart<T extends { kind: string }>(
  socket: Socket,
  { read, used, signal }: StartOptions<T>,
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
      const rest = bytes.subarray(used(reading));
      if (rest.length > 0) socket.unshift(rest);
      resolve(reading as Exclude<T, { kind: "more" }>);
    };
    if (signal.aborted) return reject(signal.reason as Error);
    if (socket.destroyed || socket.readableEnded) return gone();
    signal.addEventListener("abort", abort, { once: true });
    socket.on("data", take).once("end", gone).once("close", gone).resume();
  });
}
