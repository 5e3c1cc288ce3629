/** `/v1/apps/{app_name}/secrets`: encrypted environment variables of apps. Values can be set but never read. */
import type { SecretSummary } from "@hibernaut/secrets";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { NoQuery, replies } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import { DryRunQuery, SecretList, SecretParams, SecretsBody, SecretsEffect } from "./secrets.schemas.ts";

/** Registers the routes of secrets. */
export function secretRoutes(app: Api, { secrets, write }: Pick<ApiDeps, "secrets"> & Writes): void {
  const path = "/v1/apps/:app_name/secrets";
  const tags = ["apps"];

  app.get(
    path,
    {
      config: { scope: "read" },
      schema: {
        tags,
        summary: "List an app's secrets, without their values",
        params: AppParams,
        querystring: NoQuery,
        response: replies(200, SecretList),
      },
    },
    async ({ params }) => ({ secrets: secrets.list(params.app_name).map(secretWire) }),
  );

  app.post(
    path,
    {
      config: { scope: "deploy" },
      schema: {
        tags,
        summary: "Set secrets of an app, all or none, and discard its machines' snapshots",
        params: AppParams,
        querystring: DryRunQuery,
        body: SecretsBody,
        response: replies(200, SecretsEffect),
      },
    },
    async ({ params, query, body }) =>
      write((shared) => shared.secrets.set(params.app_name, body.secrets, { dryRun: query.dry_run ?? false })),
  );

  app.delete(
    `${path}/:secret_name`,
    {
      config: { scope: "deploy" },
      schema: {
        tags,
        summary: "Unset a secret of an app and discard its machines' snapshots",
        params: SecretParams,
        querystring: DryRunQuery,
        response: replies(200, SecretsEffect),
      },
    },
    async ({ params, query }) =>
      write((shared) => shared.secrets.unset(params.app_name, params.secret_name, { dryRun: query.dry_run ?? false })),
  );
}

function secretWire({ name, digest, updatedAt }: SecretSummary) {
  return { name, digest, updated_at: updatedAt };
}
