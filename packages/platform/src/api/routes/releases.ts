/** `/v1/apps/{app_name}/releases`: what was deployed and how it ended, as `hibernaut deploy` records it. */
import type { ReleaseRecord } from "../../domain/machine.ts";
import { pinned } from "../../domain/pinned.ts";
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
export function releaseRoutes(app: Api, { releases }: Pick<ApiDeps, "releases">): void {
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
      releases: releases.list(params.app_name, query.limit ?? LIMIT).map(releaseWire),
    }),
  );

  app.post(
    path,
    {
      schema: {
        tags,
        summary: "Begin a release: resolve its image, without changing a machine",
        params: AppParams,
        querystring: NoQuery,
        body: CreateReleaseBody,
        response: replies(201, ReleaseReply),
      },
    },
    async ({ params, body }, reply) =>
      reply.code(201).send(releaseWire(await releases.begin(params.app_name, body.image, body.description ?? ""))),
  );

  app.post(
    `${path}/:version`,
    {
      schema: {
        tags,
        summary: "Record how a release ended, or, with `pending`, that it is still being deployed",
        params: ReleaseParams,
        querystring: NoQuery,
        body: UpdateReleaseBody,
        response: replies(200, ReleaseReply),
      },
    },
    async ({ params, body }) => {
      const version = Number(params.version);
      if (body.status === "pending") return releaseWire(releases.renew(params.app_name, version));
      return releaseWire(releases.end(params.app_name, version, body.status, body.description ?? ""));
    },
  );
}

function releaseWire({ version, status, image, digest, description, createdAt }: ReleaseRecord): ReleaseWire {
  const pinnedImage = pinned(image, digest);
  return {
    version,
    status,
    image: { ref: image, digest },
    pinned_image: pinnedImage,
    description,
    created_at: createdAt,
  };
}
