/** `/v1/registries`: the platform's logins for image registries. */
import { HibernautError } from "@hibernaut/domain/errors";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, Ok } from "../schemas.ts";

const route = routesOf("images");

const RegistryParams = Type.Object(
  { host: Type.String({ description: "The registry's host, as references of images name it." }) },
  closed,
);

/** Stores a login. No reply ever contains the password. */
const RegistryBody = Type.Object(
  {
    username: Type.String({ minLength: 1, maxLength: 16_384 }),
    password: Type.String({ minLength: 1, maxLength: 16_384, writeOnly: true }),
  },
  closed,
);

const RegistryReply = Type.Object(
  { host: Type.String(), username: Type.String() },
  { ...closed, title: "RegistryLogin", description: "A login for a registry, without its password." },
);

const RegistryList = Type.Object({ registries: Type.Array(RegistryReply) }, closed);

/** Registers the routes of registries. A password can be stored but never read. */
export function registryRoutes(app: Api, { registries }: Pick<ApiDeps, "registries">): void {
  const path = "/v1/registries/:host";

  app.get(
    "/v1/registries",
    route("List the logins for registries, without their passwords", { scope: "read" }, { reply: RegistryList }),
    async () => ({ registries: await registries.list() }),
  );

  app.get(
    path,
    route(
      "Show the login for a registry, without its password",
      { scope: "read" },
      { params: RegistryParams, reply: RegistryReply },
    ),
    async (request) => {
      const login = await registries.get(request.params.host);
      if (login === undefined) throw noLogin(request.params.host);
      return login;
    },
  );

  app.put(
    path,
    route(
      "Store a login for a registry, once the registry has accepted it",
      { scope: "admin" },
      { params: RegistryParams, body: RegistryBody, reply: RegistryReply },
    ),
    async (request, reply) => {
      const { host } = request.params;
      await registries.put(host, request.body, clientGone(reply));
      return (await registries.get(host)) ?? { host, username: request.body.username };
    },
  );

  app.delete(
    path,
    route("Forget the login for a registry", { scope: "admin" }, { params: RegistryParams, reply: Ok }),
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
