/** Tags of templates: `/templates/tags` and `/templates/{id}/tags`. */
import type { FastifyInstance } from "fastify";
import type { Static } from "typebox";
import { Refusal } from "../failure.ts";
import { namedTemplate, requireTag, unknownName } from "../life/names.ts";
import { AssignBody, RemoveBody } from "./build-schemas.ts";
import type { ControlDeps } from "./deps.ts";
import { TemplateParams } from "./schemas.ts";

export function tagRoutes(app: FastifyInstance, { names }: ControlDeps): void {
  app.post<{ Body: Static<typeof AssignBody> }>(
    "/templates/tags",
    { schema: { body: AssignBody } },
    async ({ sandboxApp, body: { target, tags } }, reply) => {
      if (tags.length === 0) throw new Refusal(400, "`tags` is empty: there is nothing to assign.");
      const { build } = await names.assign(sandboxApp, target, tags.map(requireTag));
      return reply.code(201).send({ buildID: build, tags });
    },
  );
  app.delete<{ Body: Static<typeof RemoveBody> }>(
    "/templates/tags",
    { schema: { body: RemoveBody } },
    async ({ sandboxApp, body: { name, tags } }, reply) => {
      await names.remove(sandboxApp, namedTemplate(name).name, tags);
      return reply.code(204).send();
    },
  );
  app.get<{ Params: Static<typeof TemplateParams> }>(
    "/templates/:templateID/tags",
    { schema: { params: TemplateParams } },
    async ({ sandboxApp, params: { templateID } }) => {
      const { name } = namedTemplate(templateID);
      const found = names.of(sandboxApp, name);
      if (found.length === 0) throw unknownName(templateID);
      return found.map(({ tag, build, assignedAt }) => ({ tag, buildID: build, createdAt: assignedAt }));
    },
  );
}
