/** `.../machines/{machine_id}/metadata`: what is written about a machine for programs, changed without a new version. */
import { MachineMetadata } from "@hibernaut/domain/config";
import { METADATA_KEY_PATTERN, METADATA_VALUE_MAX_LENGTH, MOST_METADATA_CHANGES } from "@hibernaut/domain/metadata";
import { Type } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, nullable, Ok } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");
const PATH = "/v1/apps/:app_name/machines/:machine_id/metadata";

const value = Type.String({ maxLength: METADATA_VALUE_MAX_LENGTH });

const KeyParams = Type.Object(
  { ...MachineParams.properties, key: Type.String({ pattern: METADATA_KEY_PATTERN, description: "The key." }) },
  closed,
);

const ValueBody = Type.Object({ value }, { ...closed, title: "MetadataValue" });

const ChangeBody = Type.Record(Type.String({ pattern: METADATA_KEY_PATTERN }), nullable(value), {
  ...closed,
  maxProperties: MOST_METADATA_CHANGES,
  title: "MetadataChange",
  description: "New values by key; null removes one. What is not named stays.",
});

/** Registers the routes of metadata, which a machine's configuration shows as well. */
export function metadataRoutes(app: Api, { metadata }: Pick<ApiDeps, "metadata">): void {
  app.get(
    PATH,
    route("Show a machine's metadata", { scope: "read" }, { params: MachineParams, reply: MachineMetadata }),
    async ({ params }) => metadata.get(params.app_name, params.machine_id),
  );

  app.patch(
    PATH,
    route(
      "Change a machine's metadata",
      { scope: "deploy" },
      { params: MachineParams, body: ChangeBody, reply: MachineMetadata },
    ),
    async ({ params, body }) => metadata.change(params.app_name, params.machine_id, body),
  );

  app.post(
    `${PATH}/:key`,
    route(
      "Set one key of a machine's metadata",
      { scope: "deploy" },
      { params: KeyParams, body: ValueBody, reply: Ok },
    ),
    async ({ params, body }) => {
      metadata.change(params.app_name, params.machine_id, { [params.key]: body.value });
      return { ok: true as const };
    },
  );

  app.delete(
    `${PATH}/:key`,
    route(
      "Remove a key of a machine's metadata, if it is there",
      { scope: "deploy" },
      { params: KeyParams, reply: Ok },
    ),
    async ({ params }) => {
      metadata.change(params.app_name, params.machine_id, { [params.key]: null });
      return { ok: true as const };
    },
  );
}
