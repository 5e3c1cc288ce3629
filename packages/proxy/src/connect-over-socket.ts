/** Connects a proxy in its own process to the platform, again whenever the connection breaks. */
import { connect, type Socket } from "node:net";
import { LeaseBroker, type LeaseBrokerOptions } from "./lease-broker.ts";
import { exchangeLines } from "./message-lines.ts";
import type { FromProxy, ToProxy } from "./messages.ts";

/** The time between two attempts. A platform restarts in a second or two, and requests to sleeping machines wait for it. */
const RETRY_MS = 100;

/**
 * Connects a new broker to the coordinator behind a socket. While the platform is away, requests are sent to the machines
 * that were running when it was last there, and other requests wait.
 */
export function connectOverSocket(
  path: string,
  options: Omit<LeaseBrokerOptions, "link"> & { onConnection?(connected: boolean): void },
): { broker: LeaseBroker; close(): void } {
  let send: (message: FromProxy) => void = () => {};
  let socket: Socket | undefined;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;
  const broker: LeaseBroker = new LeaseBroker({ ...options, link: { send: (message) => send(message) } });

  const open = () => {
    const opened = connect(path);
    socket = opened;
    let connected = false;
    opened.on("connect", () => {
      connected = true;
      send = exchangeLines(opened, (message: ToProxy) => broker.receive(message));
      options.onConnection?.(true);
    });
    opened.on("error", () => {});
    opened.on("close", () => {
      send = () => {};
      if (connected) {
        broker.disconnected();
        options.onConnection?.(false);
      }
      if (!closed) retry = setTimeout(open, RETRY_MS);
    });
  };
  open();
  return {
    broker,
    close() {
      closed = true;
      clearTimeout(retry);
      broker.close();
      socket?.destroy();
    },
  };
}
