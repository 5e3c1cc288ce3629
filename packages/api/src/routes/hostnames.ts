/** `/v1/apps/{app_name}/hostnames`: custom names at which the proxy answers for an app. */
import { txtRecords as lookUp } from "@hibernaut/lib/txt";
import { requireProof } from "@hibernaut/machines";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, Ok } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

const route = routesOf("apps");

const HostnameBody = Type.Object({ hostname: Type.String({ minLength: 1, maxLength: 254 }) }, closed);

const HostnameReply = Type.Object({ hostname: Type.String() }, closed);

const HostnameList = Type.Object({ hostnames: Type.Array(Type.String()) }, closed);

const HostnameParams = Type.Object({ ...AppParams.properties, hostname: Type.String() }, closed);

/** Registers the routes of hostnames. */
export function hostnameRoutes(
  app: Api,
  { hostnames, write, txtRecords = lookUp }: Pick<ApiDeps, "hostnames" | "txtRecords"> & Writes,
): void {
  const path = "/v1/apps/:app_name/hostnames";

  app.get(
    path,
    route("List an app's hostnames", { scope: "read" }, { params: AppParams, reply: HostnameList }),
    async ({ params }) => ({ hostnames: hostnames.list(params.app_name) }),
  );

  app.post(
    path,
    route(
      "Add a hostname to an app",
      { scope: "deploy", audited: ["hostname"] },
      { params: AppParams, body: HostnameBody, created: HostnameReply },
    ),
    async ({ params: { app_name: name }, body, token }, reply) => {
      const { hostname, owner } = hostnames.claim(name, body.hostname);
      const limited = token !== null && token.apps !== null;
      if (limited && owner !== name) await requireProof({ app: name, hostname }, txtRecords, clientGone(reply));
      return reply.code(201).send({ hostname: await write((shared) => shared.hostnames.add(name, hostname)) });
    },
  );

  app.delete(
    `${path}/:hostname`,
    route("Remove a hostname from an app", { scope: "deploy" }, { params: HostnameParams, reply: Ok }),
    async ({ params }) => {
      await write((shared) => shared.hostnames.remove(params.app_name, params.hostname));
      return { ok: true as const };
    },
  );
}
