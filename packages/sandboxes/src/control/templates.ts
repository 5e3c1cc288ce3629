/** `/templates` and `/snapshots`: a snapshot of a sandbox is a template, as it is everywhere here. */
import type { TemplateTag } from "@hibernaut/domain/build";
import { guestSize } from "@hibernaut/domain/config";
import { isValidName } from "@hibernaut/domain/naming";
import type { TemplateView } from "@hibernaut/machines";
import type { FastifyInstance } from "fastify";
import type { Static } from "typebox";
import { namedTemplate } from "../life/names.ts";
import { nameOf } from "../life/sandboxes.ts";
import { INSIDE_VERSION, type SandboxView } from "../life/view.ts";
import { type ControlDeps, goneSignal } from "./deps.ts";
import { SandboxParams, SnapshotBody, SnapshotsQuery, TemplateParams } from "./schemas.ts";

export function templateRoutes(app: FastifyInstance, { needs, names, sandboxes }: ControlDeps): void {
  const { templates } = needs.resources;

  app.post<{ Params: Static<typeof SandboxParams>; Body: Static<typeof SnapshotBody> }>(
    "/sandboxes/:sandboxID/snapshots",
    { schema: { params: SandboxParams, body: SnapshotBody } },
    async ({ sandboxApp, params: { sandboxID }, body: { name } }, reply) => {
      const signal = goneSignal(reply);
      const keepAs = (own?: string) => {
        const keep = ({ record }: SandboxView) =>
          templates.createOf(sandboxApp, { machine: record.id, ...(own !== undefined && { name: own }) }, signal);
        return sandboxes.whenSteady(sandboxApp, sandboxID, keep, signal);
      };
      // The name of a template is a label. Clients have other ones, too, which are tags here.
      if (name === undefined || isValidName(name)) return reply.code(201).send(snapshotWire(await keepAs(name), []));
      sandboxes.get(sandboxApp, sandboxID);
      let made: TemplateView | undefined;
      await names.keepAs(sandboxApp, name, async (own) => (made = await keepAs(own)).template.id);
      return reply.code(201).send(made && snapshotWire(made, names.of(sandboxApp)));
    },
  );
  app.get<{ Querystring: Static<typeof SnapshotsQuery> }>(
    "/snapshots",
    { schema: { querystring: SnapshotsQuery } },
    async ({ sandboxApp, query: { sandboxID, name, limit, nextToken } }, reply) => {
      const tags = names.of(sandboxApp);
      const led = name === undefined ? undefined : names.find(sandboxApp, name);
      const all = templates
        .list(sandboxApp)
        .filter(({ template }) => sandboxID === undefined || template.machine.id === sandboxID)
        .filter(({ template }) => name === undefined || template.name === nameOf(name) || template.id === led)
        .toReversed();
      const from = nextToken === undefined ? 0 : all.findIndex(({ template }) => template.id === nextToken) + 1;
      const page = all.slice(from, from + limit);
      if (from + limit < all.length) reply.header("X-Next-Token", page.at(-1)?.template.id);
      return page.map((view) => snapshotWire(view, tags));
    },
  );
  for (const path of ["/templates", "/v2/templates"])
    app.get(path, async ({ sandboxApp }) => {
      const tags = names.of(sandboxApp);
      return templates.list(sandboxApp).map((view) => {
        const own = tags.filter(({ template }) => template === view.template.id);
        return templateWire(view, own);
      });
    });
  app.get<{ Params: Static<typeof TemplateParams> }>(
    "/templates/aliases/:templateID",
    { schema: { params: TemplateParams } },
    async ({ sandboxApp, params: { templateID } }) => {
      const { name, tag } = namedTemplate(templateID);
      // A name is taken by any of its tags.
      if (tag === undefined && names.of(sandboxApp, name).length > 0) return { templateID: name, public: false };
      const { template } = sandboxes.requireTemplate(sandboxApp, templateID);
      return { templateID: template.id, public: false };
    },
  );
  app.delete<{ Params: Static<typeof TemplateParams> }>(
    "/templates/:templateID",
    { schema: { params: TemplateParams } },
    async ({ sandboxApp, params: { templateID } }, reply) => {
      const { name, tag: only } = namedTemplate(templateID);
      const tags = names.of(sandboxApp, name).map(({ tag }) => tag);
      if (tags.length > 0) {
        await names.remove(sandboxApp, name, only === undefined ? tags : [only]);
        return reply.code(204).send();
      }
      await templates.delete(sandboxApp, sandboxes.requireTemplate(sandboxApp, templateID).template.id);
      return reply.code(204).send();
    },
  );
}

/** Without a tag, `default` is meant. */
function snapshotWire({ template: { id, name } }: TemplateView, tags: readonly TemplateTag[]) {
  const own = tags.filter(({ template }) => template === id).map((one) => `${one.name}:${one.tag}`);
  return { snapshotID: `${id}:default`, names: own.length === 0 ? [`${name}:default`] : own };
}

/** `tags`: those that lead to it. */
function templateWire({ template, machines }: TemplateView, tags: readonly TemplateTag[]) {
  const { cpus, memoryMb } = guestSize(template.machine.config);
  const [first] = tags;
  const names = first === undefined ? [template.name] : [first.name];
  return {
    ...{
      templateID: first?.name ?? template.id,
      buildID: first?.build ?? template.id,
      public: false,
      createdBy: null,
      buildStatus: "ready",
    },
    ...{ cpuCount: Math.max(1, Math.ceil(cpus)), memoryMB: memoryMb, diskSizeMB: 0, envdVersion: INSIDE_VERSION },
    ...{ createdAt: template.createdAt, updatedAt: template.createdAt, lastSpawnedAt: null },
    ...{ spawnCount: machines.length, buildCount: 1, aliases: names, names },
  };
}
