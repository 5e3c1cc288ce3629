/** Connecting to the sockets of a QEMU that may still be starting. */
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { isUnheard } from "@hibernaut/lib/absence";

/** QEMU listens within 50 ms of its start; a refused attempt costs microseconds. */
const RETRY_MS = 2;

/**
 * Connects to a Unix socket, and tries again until QEMU listens on it. Rejects with the signal's reason when it is
 * aborted first; if the host could not connect at all, then with why, because nothing is known about QEMU. The socket
 * closes itself on an error.
 */
export async function connectToQemu(path: string, signal: AbortSignal): Promise<Socket> {
  let trouble: unknown;
  for (;;) {
    if (signal.aborted) throw trouble ?? signal.reason;
    trouble = undefined;
    const socket = await connectOnce(path).catch((error: unknown) => {
      trouble = error;
    });
    if (socket) return socket;
    // Without the signal, whose reason this wait would replace by its own.
    await delay(RETRY_MS);
  }
}

/**
 * Connects to a Unix socket. Undefined when nobody listens, or QEMU lets nobody else wait (EAGAIN). Rejects when the host
 * cannot connect.
 */
export function connectOnce(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    // After the first call this does nothing but keep later errors from being thrown.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      socket.destroy();
      if (isUnheard(error) || error.code === "EAGAIN") resolve(undefined);
      else reject(error);
    });
    socket.once("connect", () => resolve(socket));
  });
}
