/** `/v1/apps/{app_name}/releases`: what was deployed, and how it went. `hibernaut deploy` writes it. */
import type { ReleaseRecord } from "../../domain/machine.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { EventsQuery, NoQuery, replies } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import {
  CreateReleaseBody,
  ReleaseList,
  ReleaseParams,
  ReleaseReply,
  type ReleaseWire,
  UpdateReleaseBody,
} from "./releases.schemas.ts";

const LIMIT = 25;

/** Registers the routes of releases. */
export function releaseRoutes(app: Api, { machines }: ApiDeps): void {
  const path = "/v1/apps/:app_name/releases";
  const tags = ["apps"];

  app.get(
    path,
    {
      schema: {
        tags,
        summary: "List an app's releases, newest first",
        params: AppParams,
        querystring: EventsQuery,
        response: replies(200, ReleaseList),
      },
    },
    async ({ params, query }) => ({
      releases: machines.listReleases(params.app_name, query.limit ?? LIMIT).map(releaseWire),
    }),
  );

  app.post(
    path,
    {
      schema: {
        tags,
        summary: "Begin a release: resolves its image, and changes no machine",
        params: AppParams,
        querystring: NoQuery,
        body: CreateReleaseBody,
        response: replies(201, ReleaseReply),
      },
    },
    async ({ params, body }, reply) =>
      reply
        .code(201)
        .send(releaseWire(await machines.beginRelease(params.app_name, body.image, body.description ?? ""))),
  );

  app.post(
    `${path}/:version`,
    {
      schema: {
        tags,
        summary: "Say how a release ended",
        params: ReleaseParams,
        querystring: NoQuery,
        body: UpdateReleaseBody,
        response: replies(200, ReleaseReply),
      },
    },
    async ({ params, body }) =>
      releaseWire(machines.endRelease(params.app_name, Number(params.version), body.status, body.description ?? "")),
  );
}

function releaseWire({ version, status, image, digest, description, createdAt }: ReleaseRecord): ReleaseWire {
  return { version, status, image: { ref: image, digest }, description, created_at: createdAt };
}
