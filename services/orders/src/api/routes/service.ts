/** Health, interface and metrics of the service. */
import type { Registry } from "prom-client";
import type { Storage } from "../../storage.ts";
import type { Api } from "../deps.ts";
import { Health, replies } from "../schemas.ts";

/** `GET /health`, `GET /openapi.json` and `GET /metrics`. */
export function serviceRoutes(app: Api, storage: Storage, registry: Registry): void {
  app.get(
    "/health",
    { schema: { tags: ["service"], summary: "Check whether the database answers", response: replies(200, Health) } },
    async () => {
      await storage.check();
      return { status: "ok" as const };
    },
  );

  app.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());

  app.get("/metrics", { schema: { hide: true } }, async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  );
}
