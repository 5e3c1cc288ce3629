/** A proxy in a process of its own: its connection to the control plane, made again whenever it breaks. */
import { connect, type Socket } from "node:net";
import { Fleet, type FleetOptions } from "./fleet.ts";
import { exchangeLines } from "./lines.ts";
import type { FromProxy, ToProxy } from "./table.ts";

/** Between two attempts. A control plane restarts in a second or two, and requests to sleeping machines wait for it. */
const RETRY_MS = 100;

/**
 * Connects a fleet to the control plane behind a socket. While that is away, requests go to the machines that
 * ran when it was last there, and the others wait.
 */
export function connectRemote(
  path: string,
  options: Omit<FleetOptions, "link"> & { onConnection?(connected: boolean): void },
): { fleet: Fleet; close(): void } {
  let send: (message: FromProxy) => void = () => {};
  let socket: Socket | undefined;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;
  const fleet: Fleet = new Fleet({ ...options, link: { send: (message) => send(message) } });

  const open = () => {
    const opened = connect(path);
    socket = opened;
    let connected = false;
    opened.on("connect", () => {
      connected = true;
      send = exchangeLines(opened, (message: ToProxy) => fleet.receive(message));
      options.onConnection?.(true);
    });
    opened.on("error", () => {});
    opened.on("close", () => {
      send = () => {};
      if (connected) {
        fleet.disconnected();
        options.onConnection?.(false);
      }
      if (!closed) retry = setTimeout(open, RETRY_MS);
    });
  };
  open();
  return {
    fleet,
    close() {
      closed = true;
      clearTimeout(retry);
      fleet.close();
      socket?.destroy();
    },
  };
}
