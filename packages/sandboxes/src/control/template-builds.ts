/** A template with its builds, what these have said, and who may use it: `/templates/{id}`. */
import type { FastifyInstance } from "fastify";
import type { Static } from "typebox";
import { Refusal } from "../failure.ts";
import { logPage } from "../life/log-page.ts";
import { namedTemplate } from "../life/names.ts";
import { buildsOf, type KnownTemplate, templateDetail } from "../life/template-detail.ts";
import { BuildParams } from "./build-schemas.ts";
import type { ControlDeps } from "./deps.ts";
import { BuildLogsQuery } from "./log-schemas.ts";
import { TemplateParams, TemplateQuery, VisibilityBody } from "./schemas.ts";

interface ById {
  Params: Static<typeof TemplateParams>;
}

export function templateBuildRoutes(app: FastifyInstance, { needs, names, builds, sandboxes }: ControlDeps): void {
  const { templates } = needs.resources;

  /** Throws 404 when there is neither a build of this name nor a template. */
  const known = (appName: string, word: string): KnownTemplate => {
    const { name } = namedTemplate(word);
    if (!builds.knows(appName, name)) {
      const view = sandboxes.requireTemplate(appName, word);
      return { id: view.template.id, name: view.template.name, builds: [], tags: [], templates: [view] };
    }
    const tags = names.of(appName, name);
    const led = new Set(tags.map(({ template }) => template));
    const views = templates.list(appName).filter(({ template }) => led.has(template.id));
    return { id: name, name, builds: builds.of(appName, name), tags, templates: views };
  };

  app.get<ById & { Querystring: Static<typeof TemplateQuery> }>(
    "/templates/:templateID",
    { schema: { params: TemplateParams, querystring: TemplateQuery } },
    async ({ sandboxApp, params: { templateID }, query: { limit, nextToken } }, reply) => {
      const found = known(sandboxApp, templateID);
      const all = buildsOf(found);
      const from = nextToken === undefined ? 0 : all.findIndex(({ buildID }) => buildID === nextToken) + 1;
      const page = all.slice(from, from + limit);
      if (from + limit < all.length) reply.header("X-Next-Token", page.at(-1)?.buildID);
      return { ...templateDetail(found, all), builds: page };
    },
  );

  for (const path of ["/templates/:templateID", "/v2/templates/:templateID"])
    app.patch<ById & { Body: Static<typeof VisibilityBody> }>(
      path,
      { schema: { params: TemplateParams, body: VisibilityBody } },
      async ({ sandboxApp, params: { templateID }, body }) => {
        const { name } = known(sandboxApp, templateID);
        if (body.public === true)
          throw new Refusal(
            501,
            "A template belongs to one app: nobody else can use it, and it cannot be made public.",
          );
        return { names: [name] };
      },
    );

  app.get<{ Params: Static<typeof BuildParams>; Querystring: Static<typeof BuildLogsQuery> }>(
    "/templates/:templateID/builds/:buildID/logs",
    { schema: { params: BuildParams, querystring: BuildLogsQuery } },
    async ({ sandboxApp, params: { templateID, buildID }, query }) => {
      const { name } = namedTemplate(templateID);
      return { logs: logPage(builds.log(builds.get(sandboxApp, name, buildID)), query) };
    },
  );
}
