/** `/v1/registries`: the platform's logins for image registries. */
import { HibernautError } from "@hibernaut/domain/errors";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import { RegistryBody, RegistryList, RegistryParams, RegistryReply } from "./registries.schemas.ts";

/** Registers the routes of registries. A password can be stored but never read. */
export function registryRoutes(app: Api, { registries }: Pick<ApiDeps, "registries">): void {
  const tags = ["images"];
  const path = "/v1/registries/:host";

  app.get(
    "/v1/registries",
    {
      config: { scope: "read" },
      schema: {
        tags,
        summary: "List the logins for registries, without their passwords",
        querystring: NoQuery,
        response: replies(200, RegistryList),
      },
    },
    async () => ({ registries: await registries.list() }),
  );

  app.get(
    path,
    {
      config: { scope: "read" },
      schema: {
        tags,
        summary: "Show the login for a registry, without its password",
        params: RegistryParams,
        querystring: NoQuery,
        response: replies(200, RegistryReply),
      },
    },
    async (request) => {
      const login = await registries.get(request.params.host);
      if (login === undefined) throw noLogin(request.params.host);
      return login;
    },
  );

  app.put(
    path,
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "Store a login for a registry, once the registry has accepted it",
        params: RegistryParams,
        querystring: NoQuery,
        body: RegistryBody,
        response: replies(200, RegistryReply),
      },
    },
    async (request, reply) => {
      const { host } = request.params;
      await registries.put(host, request.body, clientGone(reply));
      return (await registries.get(host)) ?? { host, username: request.body.username };
    },
  );

  app.delete(
    path,
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "Forget the login for a registry",
        params: RegistryParams,
        querystring: NoQuery,
        response: replies(200, Ok),
      },
    },
    async (request) => {
      if (!(await registries.delete(request.params.host))) throw noLogin(request.params.host);
      return { ok: true as const };
    },
  );
}

function noLogin(host: string): HibernautError {
  const message = `There is no login for the registry ${host.slice(0, 80)}. See \`hibernaut registry list\`.`;
  return new HibernautError("not_found", message, { registry: host.slice(0, 80) });
}
