/** `/v1/apps` */
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import { within } from "../access.ts";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { ForceQuery, NoQuery, Ok, replies } from "../schemas.ts";
import { appWire } from "../views.ts";
import { AppList, AppParams, AppReply, CreateAppBody, UpdateAppBody } from "./apps.schemas.ts";

/** Registers the routes of apps. */
export function appRoutes(
  app: Api,
  {
    apps,
    machines,
    volumes,
    proxy,
    write,
    cluster,
    closedPorts,
  }: Pick<ApiDeps, "apps" | "machines" | "volumes" | "proxy" | "cluster" | "closedPorts"> & Writes,
): void {
  const tags = ["apps"];
  const count = (name: string) => (cluster === undefined ? machines.list(name) : cluster.view.machines(name)).length;
  const wire = (record: AppRecord) =>
    appWire(record, {
      machineCount: count(record.name),
      urls: proxy?.urlsOf(record.name) ?? [],
      closedPorts: closedPorts?.(record.name) ?? [],
    });

  app.get(
    "/v1/apps",
    {
      config: { scope: "read", limited: "filtered" },
      schema: { tags, summary: "List apps", querystring: NoQuery, response: replies(200, AppList) },
    },
    async (request) => {
      const all = within(request, apps.list(), ({ name }) => name).map(wire);
      return { apps: all, total_apps: all.length };
    },
  );

  app.post(
    "/v1/apps",
    {
      config: { scope: "deploy", audited: ["app_name", "name"] },
      schema: {
        tags,
        summary: "Create an app",
        querystring: NoQuery,
        body: CreateAppBody,
        response: replies(201, AppReply),
      },
    },
    async (request, reply) => {
      const { app_name, name } = request.body;
      if (app_name !== undefined && name !== undefined && app_name !== name) {
        throw new HibernautError("invalid_argument", "`app_name` and `name` differ. Send one of them.");
      }
      const wanted = app_name ?? name;
      if (wanted === undefined) throw new HibernautError("invalid_argument", "`app_name` is missing.");
      return reply.code(201).send(wire(await write((shared) => shared.apps.create(wanted))));
    },
  );

  app.get(
    "/v1/apps/:app_name",
    {
      config: { scope: "read" },
      schema: {
        tags,
        summary: "Show an app",
        params: AppParams,
        querystring: NoQuery,
        response: replies(200, AppReply),
      },
    },
    async (request) => wire(apps.get(request.params.app_name)),
  );

  app.patch(
    "/v1/apps/:app_name",
    {
      config: { scope: "deploy", audited: ["status_page"] },
      schema: {
        tags,
        summary: "Change an app",
        params: AppParams,
        querystring: NoQuery,
        body: UpdateAppBody,
        response: replies(200, AppReply),
      },
    },
    async ({ params: { app_name: name }, body: { status_page: statusPage } }) =>
      wire(
        statusPage === undefined
          ? apps.get(name)
          : await write((shared) => shared.apps.setStatusPage(name, statusPage)),
      ),
  );

  app.delete(
    "/v1/apps/:app_name",
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "Delete an app; with `force`, also its machines and volumes",
        params: AppParams,
        querystring: ForceQuery,
        response: replies(200, Ok),
      },
    },
    async (request) => {
      const { app_name: name } = request.params;
      const { force = false } = request.query;
      if (cluster === undefined) await apps.delete(name, { force });
      // The host that the client talks to removes the app when all hosts have emptied it.
      else {
        const { emptyHere } = await import("../cluster/empty-here.ts");
        const { emptyEverywhere } = await import("../cluster/empty-everywhere.ts");
        const here = () => emptyHere(name, { force }, { apps, volumes, cluster });
        if (request.peer !== null) await here();
        else await cluster.shared.deleteApp(name, () => emptyEverywhere(request, cluster, here));
      }
      return { ok: true as const };
    },
  );
}
