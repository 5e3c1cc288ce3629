/** `/v1/apps/{app_name}/hostnames`: names of an app's own, under which the proxy answers for it. */
import type { Api, ApiDeps } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import { HostnameBody, HostnameList, HostnameParams, HostnameReply } from "./hostnames.schemas.ts";

/** Registers the routes of host names. */
export function hostnameRoutes(app: Api, { machines }: ApiDeps): void {
  const path = "/v1/apps/:app_name/hostnames";
  const common = { tags: ["apps"], querystring: NoQuery };
  const namesOf = (name: string) => {
    machines.getApp(name);
    return Object.entries(machines.hostnames())
      .filter(([, owner]) => owner === name)
      .map(([hostname]) => hostname);
  };

  app.get(
    path,
    {
      schema: {
        ...common,
        summary: "List an app's host names",
        params: AppParams,
        response: replies(200, HostnameList),
      },
    },
    async ({ params }) => ({ hostnames: namesOf(params.app_name) }),
  );

  app.post(
    path,
    {
      schema: {
        ...common,
        summary: "Let an app answer for a host name",
        params: AppParams,
        body: HostnameBody,
        response: replies(201, HostnameReply),
      },
    },
    async ({ params, body }, reply) =>
      reply.code(201).send({ hostname: machines.addHostname(params.app_name, body.hostname) }),
  );

  app.delete(
    `${path}/:hostname`,
    { schema: { ...common, summary: "Take a host name back", params: HostnameParams, response: replies(200, Ok) } },
    async ({ params }) => {
      machines.removeHostname(params.app_name, params.hostname);
      return { ok: true as const };
    },
  );
}
