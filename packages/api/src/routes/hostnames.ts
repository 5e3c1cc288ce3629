/** `/v1/apps/{app_name}/hostnames`: custom names at which the proxy answers for an app. */
import { txtRecords as lookUp } from "@hibernaut/lib/txt";
import { requireProof } from "@hibernaut/machines";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import { HostnameBody, HostnameList, HostnameParams, HostnameReply } from "./hostnames.schemas.ts";

/** Registers the routes of hostnames. */
export function hostnameRoutes(
  app: Api,
  { hostnames, write, txtRecords = lookUp }: Pick<ApiDeps, "hostnames" | "txtRecords"> & Writes,
): void {
  const path = "/v1/apps/:app_name/hostnames";
  const common = { tags: ["apps"], querystring: NoQuery };

  app.get(
    path,
    {
      config: { scope: "read" },
      schema: {
        ...common,
        summary: "List an app's hostnames",
        params: AppParams,
        response: replies(200, HostnameList),
      },
    },
    async ({ params }) => ({ hostnames: hostnames.list(params.app_name) }),
  );

  app.post(
    path,
    {
      config: { scope: "deploy", audited: ["hostname"] },
      schema: {
        ...common,
        summary: "Add a hostname to an app",
        params: AppParams,
        body: HostnameBody,
        response: replies(201, HostnameReply),
      },
    },
    async ({ params: { app_name: name }, body, token }, reply) => {
      const { hostname, owner } = hostnames.claim(name, body.hostname);
      const limited = token !== null && token.apps !== null;
      if (limited && owner !== name) await requireProof({ app: name, hostname }, txtRecords, clientGone(reply));
      return reply.code(201).send({ hostname: await write((shared) => shared.hostnames.add(name, hostname)) });
    },
  );

  app.delete(
    `${path}/:hostname`,
    {
      config: { scope: "deploy" },
      schema: {
        ...common,
        summary: "Remove a hostname from an app",
        params: HostnameParams,
        response: replies(200, Ok),
      },
    },
    async ({ params }) => {
      await write((shared) => shared.hostnames.remove(params.app_name, params.hostname));
      return { ok: true as const };
    },
  );
}
