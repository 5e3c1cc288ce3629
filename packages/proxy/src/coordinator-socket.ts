/** Where proxies in their own processes find the coordinator: a Unix socket in the data directory. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { exchangeLines } from "./message-lines.ts";
import type { FromProxy } from "./messages.ts";
import type { ProxyCoordinator } from "./proxy-coordinator.ts";

/** Returns the socket's path. Only the owner of the data directory can access it. */
export function coordinatorSocketPath(dataDir: string): string {
  return join(dataDir, "proxy.sock");
}

/** Lets proxies connect until closed. */
export async function listenForProxies(
  coordinator: ProxyCoordinator,
  path: string,
): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    // No message arrives before the next turn of the event loop, when `proxy` is set.
    const send = exchangeLines(socket, (message: FromProxy) => proxy.receive(message));
    const proxy = coordinator.connect(send);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      proxy.close();
    });
  });
  // Left by a platform that was killed. The lock on the data directory ensures that there is no other.
  await rm(path, { force: true });
  server.listen(path);
  await once(server, "listening");
  return {
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
