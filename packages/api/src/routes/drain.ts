/** `/v1/platform/drain`: the platform takes no new work, and suspends machines before its host goes down. */
import type { DrainView } from "@hibernaut/machines";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { DrainBody, DrainReply, type DrainWire } from "./platform.schemas.ts";

const route = routesOf("platform");

/** Registers the routes of the drain. The reply says what is stored; the work follows. */
export function drainRoutes(app: Api, { drain }: Pick<ApiDeps, "drain">): void {
  const path = "/v1/platform/drain";

  app.get(path, route("Show the drain and how far it has come", { scope: "read" }, { reply: DrainReply }), async () =>
    drainWire(drain.get()),
  );

  app.post(
    path,
    route(
      "Stop starting machines, and suspend those that run",
      { scope: "admin", audited: ["suspend", "timeout"] },
      { optionalBody: DrainBody, reply: DrainReply },
    ),
    async ({ body: { suspend, timeout } }) =>
      drainWire(
        drain.begin({
          ...(suspend !== undefined && { suspend }),
          ...(timeout !== undefined && { timeoutS: timeout }),
        }),
      ),
  );

  app.delete(
    path,
    route("End the drain, and start the machines that it suspended", { scope: "admin" }, { reply: DrainReply }),
    async () => {
      drain.end();
      return drainWire(drain.get());
    },
  );
}

function drainWire(view: DrainView | undefined): DrainWire {
  if (view === undefined)
    return { state: "none", suspend: false, started_at: null, deadline: null, completed_at: null, machines: [] };
  const { suspend, startedAt, deadline, completedAt } = view.drain;
  return {
    state: completedAt === null ? "draining" : "drained",
    suspend,
    started_at: startedAt,
    deadline,
    completed_at: completedAt,
    machines: view.machines.map(({ id, app, name, result, reason }) => ({
      machine_id: id,
      app_name: app,
      name,
      result,
      reason,
    })),
  };
}
