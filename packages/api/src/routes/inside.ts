/** Routes for programs inside a machine: keep-awake leases, planned wakes, and the events of their own machine. */
import { PassThrough } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import type { FastifyRequest } from "fastify";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { NoBody, Ok, streamed } from "../schemas.ts";
import { sent } from "./actions.ts";
import { KeepAliveBody, KeepAliveReply, PreparedReply, QuestionParams, WakeBody, WakeReply } from "./inside.schemas.ts";

const route = routesOf("inside");

/** A program that leaves this much unread is disconnected. An event is one line. */
const MAX_UNREAD_BYTES = 65_536;

/** Registers the routes that only programs inside a machine can use. */
export function insideRoutes(app: Api, { guestApi }: Pick<ApiDeps, "guestApi">): void {
  const config = { inside: "only" } as const;
  const listeners = new Set<PassThrough>();
  app.addHook("preClose", async () => {
    for (const stream of listeners) stream.end();
  });

  app.put(
    "/v1/keepalive",
    route("Keep this machine awake while it is idle", config, { body: KeepAliveBody, reply: KeepAliveReply }),
    async (request) => {
      const { ttl, reason = "" } = request.body;
      return { ok: true as const, keep_awake: guestApi.keepAwake(selfOf(request), ttl, reason) };
    },
  );

  app.delete("/v1/keepalive", route("End the keep-awake lease", config, { reply: Ok }), async (request) => {
    guestApi.keepAwake(selfOf(request), 0, "");
    return { ok: true as const };
  });

  app.put(
    "/v1/wake",
    route("Wake this machine at a time, if it is suspended by then", config, { body: WakeBody, reply: WakeReply }),
    async (request) => ({ ok: true as const, wake_at: guestApi.planWake(selfOf(request), request.body).at }),
  );

  app.delete("/v1/wake", route("Forget the planned wake", config, { reply: Ok }), async (request) => {
    guestApi.cancelWake(selfOf(request));
    return { ok: true as const };
  });

  app.post(
    "/v1/prepared",
    route("Report that this machine is prepared for requests: a prewarm may end", config, {
      optionalBody: NoBody,
      reply: PreparedReply,
    }),
    async (request, reply) => {
      const id = selfOf(request);
      // The machine may be suspended right after this.
      guestApi.awaitReply(id, sent(reply.raw));
      return { ok: true as const, prewarm: guestApi.prepared(id) };
    },
  );

  app.get(
    "/v1/events",
    route("Stream starts and suspends of this machine as server-sent events", config, {
      description:
        '`event: resume` or `cold` with `{"kind","slept_ms"}`, the last start first; `event: suspend` with `{"kind","id","deadline_ms"}` when `suspend_config` asks the app to get ready. The stream continues after a resume.',
      response: streamed(200, "text/event-stream", "the events, until the connection ends"),
    }),
    (request, reply) => {
      const id = selfOf(request);
      const stream = new PassThrough({ highWaterMark: MAX_UNREAD_BYTES });
      listeners.add(stream);
      const stop = guestApi.subscribe(id, (event) => {
        if (stream.writableLength > MAX_UNREAD_BYTES) stream.destroy();
        else stream.write(`event: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`);
      });
      reply.raw.once("close", () => {
        stop();
        listeners.delete(stream);
        stream.destroy();
      });
      return reply.header("cache-control", "no-store").type("text/event-stream").send(stream);
    },
  );

  app.post(
    "/v1/events/:event_id/ready",
    route("Report that this program is ready for the suspend", config, {
      params: QuestionParams,
      optionalBody: NoBody,
      reply: Ok,
    }),
    async (request) => {
      guestApi.ready(selfOf(request), request.params.event_id);
      return { ok: true as const };
    },
  );
}

function selfOf(request: FastifyRequest): string {
  if (request.insideMachine === null) throw new HibernautError("internal", "Only machines can use this route.");
  return request.insideMachine;
}
