/** `/v1/apps` */
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import { type Grant, reachesApp } from "@hibernaut/domain/scopes";
import { requireUnlimited, within } from "../access.ts";
import { deleteApp } from "../app-deletion.ts";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { routesOf } from "../route.ts";
import { ForceQuery, Ok } from "../schemas.ts";
import { appWire } from "../views.ts";
import { AppList, AppParams, AppReply, CreateAppBody, UpdateAppBody } from "./apps.schemas.ts";

const route = routesOf("apps");

/** What is needed to show an app. */
export type AppDeps = Pick<
  ApiDeps,
  "apps" | "machines" | "volumes" | "proxy" | "cluster" | "closedPorts" | "sandboxes"
>;

/** Returns what shows apps on the wire, to the bearer of a token. */
export function appWiring({ machines, proxy, cluster, closedPorts, sandboxes }: AppDeps) {
  const count = (name: string) => (cluster === undefined ? machines.list(name) : cluster.view.machines(name)).length;
  return (record: AppRecord, token: Grant | null) =>
    appWire(record, {
      reaches: (app) => token === null || reachesApp(token, app),
      machineCount: count(record.name),
      urls: proxy?.urlsOf(record.name) ?? [],
      closedPorts: closedPorts?.(record.name) ?? [],
      sandboxPortUrl: sandboxes?.()?.portUrl,
    });
}

/** Registers the routes of apps. */
export function appRoutes(app: Api, deps: AppDeps & Writes): void {
  const { apps, write } = deps;
  const wire = appWiring(deps);

  app.get(
    "/v1/apps",
    route("List apps", { scope: "read", limited: "filtered" }, { reply: AppList }),
    async (request) => {
      const all = within(request, apps.list(), ({ name }) => name).map((one) => wire(one, request.token));
      return { apps: all, total_apps: all.length };
    },
  );

  app.post(
    "/v1/apps",
    route(
      "Create an app",
      { scope: "deploy", audited: ["app_name", "name", "network", "aliases", "wakes"] },
      { body: CreateAppBody, created: AppReply },
    ),
    async (request, reply) => {
      const { app_name, name, ...place } = request.body;
      if (app_name !== undefined && name !== undefined && app_name !== name) {
        throw new HibernautError("invalid_argument", "`app_name` and `name` differ. Send one of them.");
      }
      const wanted = app_name ?? name;
      if (wanted === undefined) throw new HibernautError("invalid_argument", "`app_name` is missing.");
      const made = await write((shared) => shared.apps.create(wanted, place));
      return reply.code(201).send(wire(made, request.token));
    },
  );

  app.get(
    "/v1/apps/:app_name",
    route("Show an app", { scope: "read" }, { params: AppParams, reply: AppReply }),
    async ({ token, params }) => wire(apps.get(params.app_name), token),
  );

  app.patch(
    "/v1/apps/:app_name",
    route(
      "Change an app",
      { scope: "deploy", audited: ["status_page", "aliases", "wakes"] },
      { params: AppParams, body: UpdateAppBody, reply: AppReply },
    ),
    async ({ token, params: { app_name: name }, body: { status_page: statusPage, ...place } }) => {
      const placed = Object.keys(place).length > 0;
      if (placed) requireUnlimited(token, "deploy");
      if (statusPage === undefined && !placed) return wire(apps.get(name), token);
      const changed = await write(({ apps: shared }) => {
        if (placed) shared.setPlace(name, place);
        return statusPage === undefined ? shared.get(name) : shared.setStatusPage(name, statusPage);
      });
      return wire(changed, token);
    },
  );

  app.delete(
    "/v1/apps/:app_name",
    route(
      "Delete an app; with `force`, also its machines and volumes",
      { scope: "admin" },
      { params: AppParams, querystring: ForceQuery, reply: Ok },
    ),
    async (request) => {
      const { app_name: name } = request.params;
      const { force = false } = request.query;
      await deleteApp(request, { name, force }, deps);
      return { ok: true as const };
    },
  );
}
