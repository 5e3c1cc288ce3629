/** Connects to a machine that may need a moment until its port answers. */
import { connect as open, type Socket, type SocketConstructorOpts, type TcpNetConnectOpts } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Limits } from "./limits.ts";

interface ConnectOptions {
  address: string;
  port: number;
  /** On the clock of `performance.now()`. One attempt is made even if it has passed. */
  deadline: number;
  signal: AbortSignal;
  limits: Pick<Limits, "connectAttemptMs" | "connectPauseMs">;
  /** More options of the socket. */
  more?: MoreOptions | undefined;
}

export type MoreOptions = Pick<SocketConstructorOpts, "onread"> & { highWaterMark?: number };

/**
 * Tries every few milliseconds, each time with a new socket, until the port answers or the deadline has passed. A single
 * attempt is short, so that a packet that was lost while the machine woke does not cost the kernel's whole second.
 * Rejects with the error of the last attempt, or with the signal's reason.
 */
export async function connect({ address, port, deadline, signal, limits, more }: ConnectOptions): Promise<Socket> {
  let pauseMs = limits.connectPauseMs.first;
  for (;;) {
    signal.throwIfAborted();
    const left = Math.max(deadline - performance.now(), 0);
    try {
      const attemptMs = left > 0 ? Math.min(limits.connectAttemptMs, left) : limits.connectAttemptMs;
      return await attempt({ ...more, host: address, port }, attemptMs, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (performance.now() + pauseMs >= deadline) throw error;
    }
    await pause(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    pauseMs = Math.min(pauseMs * 1.5, limits.connectPauseMs.last);
  }
}

function attempt(options: TcpNetConnectOpts, timeoutMs: number, signal: AbortSignal): Promise<Socket> {
  const place = `${options.host}:${options.port}`;
  const late = `${place} did not answer within ${timeoutMs} ms.`;
  const socket = open({ ...options, noDelay: true, allowHalfOpen: true });
  return opened(socket, "connect", { place, late, timeoutMs, signal });
}

interface Opening {
  /** What the socket connects to, for the error when it closes. */
  place: string;
  timeoutMs: number;
  /** What the error says after that time. */
  late: string;
  signal: AbortSignal;
}

/** Resolves with the socket on the event. Otherwise destroys it, and rejects with what went wrong or the signal's reason. */
export function opened<S extends Socket>(
  socket: S,
  event: "connect" | "secureConnect",
  { place, timeoutMs, late, signal }: Opening,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.off(event, connected).off("error", giveUp).off("close", closed);
    };
    const giveUp = (error: Error) => {
      end();
      // The socket may still report that its connection failed, when nothing waits for it anymore.
      socket.on("error", () => {}).destroy();
      reject(error);
    };
    const connected = () => {
      end();
      resolve(socket);
    };
    const closed = () => giveUp(new Error(`${place} closed the connection.`));
    const abort = () => giveUp(signal.reason as Error);
    const timer = setTimeout(() => giveUp(new Error(late)), timeoutMs);
    socket.once(event, connected).once("error", giveUp).once("close", closed);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
}
