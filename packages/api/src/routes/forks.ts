/** Machines that are born from the memory of another one: forks, and templates. */
import { HibernautError } from "@hibernaut/domain/errors";
import { DEFAULT_TEMPLATE_TIMEOUT_S } from "@hibernaut/domain/limits";
import { given } from "@hibernaut/lib/given";
import type { Births, TemplateView } from "@hibernaut/machines";
import type { Static } from "typebox";
import { clientGone } from "../client-gone.ts";
import { MISSING_HEADER } from "../cluster/headers.ts";
import { bringTemplate, knownTemplate } from "../cluster/templates.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { Ok } from "../schemas.ts";
import { machineWire, templateWire } from "../views.ts";
import { AppParams } from "./apps.schemas.ts";
import {
  CreateTemplateBody,
  ForkBody,
  RestoreBody,
  TemplateList,
  TemplateParams,
  TemplateReply,
  UpdateTemplateBody,
} from "./forks.schemas.ts";
import { MachineList, MachineParams, MachineReply } from "./machines.schemas.ts";

const AUDITED = ["name", "count"];

export function forkRoutes(
  app: Api,
  { forks, restores, sandboxes, cluster }: Pick<ApiDeps, "forks" | "restores" | "sandboxes" | "cluster">,
): void {
  app.post(
    "/v1/apps/:app_name/machines/:machine_id/fork",
    routesOf("machines")(
      "Fork a machine",
      { scope: "deploy", audited: AUDITED },
      {
        params: MachineParams,
        optionalBody: ForkBody,
        created: MachineList,
        description:
          "Makes machines with the memory and the disk that a running or suspended machine has at this moment, each with an identity of its own. The machine itself continues. Forks of a sandbox are sandboxes, whose time begins now.",
      },
    ),
    async ({ params, body }, reply) => {
      const { app_name: appName, machine_id: id } = params;
      const sandbox = sandboxes?.()?.heirOf(appName, id);
      const births = { ...birthsOf(body), ...(sandbox !== undefined && { sandbox }) };
      const views = await forks.fork(appName, id, births, clientGone(reply));
      sandboxes?.()?.forked();
      return reply.code(201).send(views.map(machineWire));
    },
  );

  app.post(
    "/v1/apps/:app_name/machines/:machine_id/restore",
    routesOf("machines")(
      "Restore a machine from a template",
      { scope: "deploy", audited: ["template"] },
      {
        params: MachineParams,
        body: RestoreBody,
        reply: MachineReply,
        description:
          "The machine continues where the template stopped, with the configuration of the template, and keeps its id, name and address. The memory and the disk that it had are gone; one that runs ends as if its power was cut.",
      },
    ),
    async (request, reply) => {
      const { app_name: appName, machine_id: id } = request.params;
      const { template, skip_launch: skipLaunch = false } = request.body;
      const chosen = { template, skipLaunch, requireStill: () => request.requireUnheld() };
      await bringTemplate(appName, template, { cluster }, clientGone(reply));
      return machineWire(await restores.restore(appName, id, chosen, clientGone(reply)));
    },
  );
}

export function templateRoutes(app: Api, { templates, cluster }: Pick<ApiDeps, "templates" | "cluster">): void {
  const route = routesOf("templates");
  const path = "/v1/apps/:app_name/templates";
  const create = (appName: string, { from, ...body }: Static<typeof CreateTemplateBody>, signal: AbortSignal) => {
    const { name, prepare, ready, timeout, warm_pool: warmPool } = body;
    const chosen = { name, warmPool };
    if (typeof from !== "string") {
      const timeoutMs = (timeout ?? DEFAULT_TEMPLATE_TIMEOUT_S) * 1000;
      const steps = { ...(prepare !== undefined && { prepare }), ...(ready !== undefined && { ready }) };
      return templates.createFrom(appName, { config: from, timeoutMs, ...steps, ...chosen }, signal);
    }
    const field = (["prepare", "ready", "timeout"] as const).find((each) => body[each] !== undefined);
    if (field === undefined) return templates.createOf(appName, { machine: from, ...chosen }, signal);
    const message = `\`${field}\` prepares a machine that is made for the template. Leave it out, or send a configuration as \`from\`.`;
    throw new HibernautError("invalid_argument", message, { field });
  };

  const wire = (view: TemplateView) => {
    if (cluster === undefined) return templateWire(view);
    // The directory may not have heard of this one yet.
    const hosts = new Set([...cluster.templates.hostsOf(view.template), cluster.shared.host]);
    return templateWire(view, [...hosts].toSorted());
  };

  app.get(
    path,
    route("List an app's templates", { scope: "read" }, { params: AppParams, reply: TemplateList }),
    async ({ params }) => templates.list(params.app_name).map(wire),
  );

  app.post(
    path,
    route(
      "Make a template of a machine, or of a configuration",
      { scope: "deploy", audited: ["name"] },
      {
        params: AppParams,
        body: CreateTemplateBody,
        created: TemplateReply,
        description:
          "Keeps the state that a running or suspended machine has at this moment; the machine itself continues. Or makes a machine of a configuration, prepares it, keeps its state and destroys it: the reply may take minutes.",
      },
    ),
    async ({ params, body }, reply) => {
      const view = await create(params.app_name, body, clientGone(reply));
      return reply.code(201).send(wire(view));
    },
  );

  app.get(
    `${path}/:template`,
    route("Show a template", { scope: "read" }, { params: TemplateParams, reply: TemplateReply }),
    async ({ params }) => wire(templates.get(params.app_name, params.template)),
  );

  app.post(
    `${path}/:template`,
    route(
      "Set the pool of a template",
      { scope: "deploy", audited: ["warm_pool"] },
      {
        params: TemplateParams,
        body: UpdateTemplateBody,
        reply: TemplateReply,
        description: "The machines are made, or destroyed, after the reply. The template itself does not change.",
      },
    ),
    async ({ params, body }) => wire(templates.setPool(params.app_name, params.template, body.warm_pool)),
  );

  app.delete(
    `${path}/:template`,
    route(
      "Delete a template; the machines that were made from it stay",
      { scope: "deploy" },
      {
        params: TemplateParams,
        reply: Ok,
        description:
          "In a cluster, it is deleted on all hosts. `Hibernaut-Hosts-Missing` names those that are away and have it still: each deletes it when it is back.",
      },
    ),
    async ({ params: { app_name: appName, template } }, reply) => {
      const known = cluster && (await knownTemplate(appName, template, cluster));
      if (known === undefined) await templates.delete(appName, template);
      const left = known === undefined ? [] : await cluster?.templates.delete(known);
      if (left !== undefined && left.length > 0) reply.header(MISSING_HEADER, left.join(", "));
      return { ok: true as const };
    },
  );
}

function birthsOf(body: Static<typeof ForkBody>): Births & { skipLaunch: boolean } {
  const { count = 1, skip_launch: skipLaunch = false, skip_service_registration: cordoned, name, env } = body;
  return {
    ...{ count, skipLaunch },
    ...given({ name, env, cordoned }),
  };
}
