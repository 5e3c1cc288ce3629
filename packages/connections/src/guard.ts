/** Lets a server accept only what the budget has room for. */
import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import { type Server, Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ConnectionBudget } from "./budget.ts";

/** Calls `admit` for each connection before the server serves it. One that was refused is destroyed by then. */
export function guard(server: Server, admit: (socket: Socket) => void): void {
  server.prependListener("connection", admit);
}

/** For a server of Node's, whose connections are idle between its requests. */
export function guardHttp(server: HttpServer, budget: ConnectionBudget, tls: boolean): void {
  // Others hand it connections of their own: from inside machines, and of other hosts.
  const isOwn = (socket: unknown) => socket instanceof Socket && !(socket instanceof TLSSocket);
  guard(server, (socket) => void (isOwn(socket) && budget.admit(socket, { tls })));
  server.prependListener("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    const seat = budget.seatOf(socket);
    if (seat === undefined) return;
    seat.begin();
    response.once("close", () => seat.rest());
  });
  server.prependListener("upgrade", ({ socket }: IncomingMessage) => {
    if (server.listenerCount("upgrade") > 1) {
      budget.seatOf(socket)?.begin();
      return;
    }
    // With this listener alone, nobody would notice that the client is gone, and Node no longer listens for its errors.
    socket.on("error", () => {}).destroy();
  });
}
