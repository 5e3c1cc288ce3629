/** The one query of Fly's GraphQL that its machine commands ask first: about an app. */
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { askFor, path } from "./ask.ts";
import type { FlyNeeds } from "./contract.ts";
import { PlatformRefusal } from "./failure.ts";
import { appView, ORGANIZATION } from "./view/others.ts";
import type { PlatformApp } from "./view/platform.ts";

/** Where clients ask. */
export const QUERIES = "/graphql";
/** The query of the clients has some hundred bytes. */
const MOST_BYTES = 16 * 1024;

const Body = Type.Object({
  query: Type.String({ maxLength: 65_536 }),
  variables: Type.Optional(Type.Object({ appName: Type.Optional(Type.String()), name: Type.Optional(Type.String()) })),
});
/** It asks for an app by a name of its own for it, such as `appcompact`, or without one, whatever fields follow. */
const ASKS_FOR_APP = /(?:\b(\w{1,40})\s{0,9}:\s{0,9})?\bapp\s{0,9}\(/;

const ONLY_APPS =
  "Only a query about one app is answered here. The Machines API on this port has the rest: secrets, for example, are at /v1/apps/<app>/secrets.";

export function graphqlRoute(app: FastifyInstance, needs: Pick<FlyNeeds, "ask">): void {
  // GraphQL's errors are answers, with status 200: clients take any other for a fault of the server.
  app.post<{ Body: { query: string; variables?: { appName?: string; name?: string } } }>(
    QUERIES,
    { schema: { body: Body }, bodyLimit: MOST_BYTES },
    async (request, reply) => {
      const { query, variables = {} } = request.body;
      const ask = askFor(request, reply, needs.ask);
      const asked = ASKS_FOR_APP.exec(query);
      const alias = asked?.[1] ?? "app";
      if (asked === null) return failure("query", ONLY_APPS, "NOT_IMPLEMENTED");
      const name = variables.appName ?? variables.name ?? "";
      try {
        return { data: { [alias]: compact((await ask("GET", path`/v1/apps/${name}`)) as PlatformApp) } };
      } catch (error) {
        if (error instanceof PlatformRefusal && error.code === "not_found")
          return failure(alias, `Could not find App "${name.slice(0, 80)}"`, "NOT_FOUND");
        if (error instanceof PlatformRefusal) return failure(alias, error.message, error.code.toUpperCase());
        throw error;
      }
    },
  );
}

function compact(platformApp: PlatformApp) {
  const { id, name, internal_numeric_id, status, network, cname_target } = appView(platformApp);
  const [url = ""] = platformApp.urls;
  const { slug } = ORGANIZATION;
  return {
    id,
    internalNumericId: internal_numeric_id,
    name,
    hostname: cname_target,
    cnameTarget: cname_target,
    deployed: status === "deployed",
    network,
    status,
    appUrl: url,
    platformVersion: "machines",
    // A text here, unlike the other.
    organization: { id: slug, name: ORGANIZATION.name, internalNumericId: "1", slug, rawSlug: slug, paidPlan: true },
    postgresAppRole: null,
    ipAddresses: { nodes: [] },
  };
}

function failure(at: string, message: string, code: string) {
  return { data: null, errors: [{ message, path: [at], extensions: { code } }] };
}
