/** `GET .../machines/{machine_id}/forward` as a WebSocket: one connection to a TCP port inside a machine. */
import type { WebSocket } from "@fastify/websocket";
import { background } from "@hibernaut/lib/background";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, streamed } from "../schemas.ts";
import { streamCommand } from "./exec-stream.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

/** `?port=5432` */
const ForwardQuery = Type.Object(
  {
    port: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      description: "A TCP port that a program in the machine listens on.",
    }),
  },
  closed,
);

/** Registers the route that forwards a connection. Its messages are those of a streamed command. */
export function forwardRoute(app: Api, { forwards }: Pick<ApiDeps, "forwards">): void {
  app.get(
    "/v1/apps/:app_name/machines/:machine_id/forward",
    {
      ...route(
        "Connect to a TCP port inside a machine over a WebSocket; wakes the machine",
        { scope: "exec" },
        {
          params: MachineParams,
          querystring: ForwardQuery,
          response: streamed(101, "application/octet-stream", "a WebSocket"),
        },
      ),
      websocket: true,
      // Before the upgrade, so that a refusal is an HTTP error. The connection opens when there is someone to use it.
      preHandler: async (request, reply) => {
        const { app_name: appName, machine_id: id } = request.params;
        await forwards.prepare(appName, id, request.query.port, clientGone(reply));
      },
    },
    (socket: WebSocket, request) => {
      const { app_name: appName, machine_id: id } = request.params;
      const { port } = request.query;
      socket.on("message", () => wake(() => forwards.wake(appName, id)));
      const begin = () => forwards.connect(appName, id, port);
      background(streamCommand(socket, begin, [`port ${port}`], { ends: true }), "the stream of a connection");
    },
  );
}

/** A machine that cannot be woken keeps what it was sent until it runs again, or ends the connection. */
function wake(start: () => void): void {
  try {
    start();
  } catch {
    // A drain, or a state that passes by itself.
  }
}
