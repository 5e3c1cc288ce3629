/** `/v1/apps/{app_name}/secrets`: encrypted environment variables of apps. Values can be set but never read. */
import type { SecretSummary } from "@hibernaut/secrets";
import { Type } from "typebox";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

const route = routesOf("apps");

const Secret = Type.Object(
  {
    name: Type.String(),
    digest: Type.String({ description: "Equal for equal values." }),
    updated_at: time,
  },
  { ...closed, title: "Secret", description: "A secret of an app, without its value." },
);

const SecretList = Type.Object({ secrets: Type.Array(Secret) }, closed);

const SecretParams = Type.Object({ ...AppParams.properties, secret_name: Type.String() }, closed);

const SecretsBody = Type.Object(
  {
    secrets: Type.Record(Type.String(), Type.String(), {
      description: "Values by names of environment variables. HIBERNAUT_* and FLY_* are reserved.",
    }),
  },
  closed,
);

const SecretsEffect = Type.Object(
  {
    discarded: Type.Array(Type.String(), {
      description: "Ids of the sleeping machines whose snapshots were deleted. Their next start is a cold start.",
    }),
    pending: Type.Array(Type.String(), {
      description: "Ids of the running machines, which see the change after a restart.",
    }),
  },
  { ...closed, title: "SecretsEffect", description: "What a change of secrets means to the app's machines." },
);

/** `?dry_run=true` */
const DryRunQuery = Type.Object(
  {
    dry_run: Type.Optional(
      Type.Boolean({ description: "Change nothing and return what would happen. Default: false." }),
    ),
  },
  closed,
);

/** Registers the routes of secrets. */
export function secretRoutes(app: Api, { secrets, write }: Pick<ApiDeps, "secrets"> & Writes): void {
  const path = "/v1/apps/:app_name/secrets";

  app.get(
    path,
    route("List an app's secrets, without their values", { scope: "read" }, { params: AppParams, reply: SecretList }),
    async ({ params }) => ({ secrets: secrets.list(params.app_name).map(secretWire) }),
  );

  app.post(
    path,
    route(
      "Set secrets of an app, all or none, and discard its machines' snapshots",
      { scope: "deploy" },
      { params: AppParams, querystring: DryRunQuery, body: SecretsBody, reply: SecretsEffect },
    ),
    async ({ params, query, body }) =>
      write((shared) => shared.secrets.set(params.app_name, body.secrets, { dryRun: query.dry_run ?? false })),
  );

  app.delete(
    `${path}/:secret_name`,
    route(
      "Unset a secret of an app and discard its machines' snapshots",
      { scope: "deploy" },
      { params: SecretParams, querystring: DryRunQuery, reply: SecretsEffect },
    ),
    async ({ params, query }) =>
      write((shared) => shared.secrets.unset(params.app_name, params.secret_name, { dryRun: query.dry_run ?? false })),
  );
}

function secretWire({ name, digest, updatedAt }: SecretSummary) {
  return { name, digest, updated_at: updatedAt };
}
