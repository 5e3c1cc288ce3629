/** `/v1/apps/{app_name}/releases`: what was deployed and how it ended, as `hibernaut deploy` records it. */
import type { ReleaseRecord } from "@hibernaut/domain/machine";
import { pinned } from "@hibernaut/domain/pinned";
import type { CommandOutput, CommandVerdict, LogEntry } from "@hibernaut/machines";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { routesOf } from "../route.ts";
import { EventsQuery, streamed } from "../schemas.ts";
import { NDJSON, OpenReplies } from "../stream-replies.ts";
import { AppParams } from "./apps.schemas.ts";
import {
  COMMAND_TIMEOUT_S,
  type CommandEndWire,
  CreateReleaseBody,
  ReleaseCommandBody,
  ReleaseCommandLine,
  ReleaseList,
  ReleaseParams,
  ReleaseReply,
  type ReleaseWire,
  UpdateReleaseBody,
} from "./releases.schemas.ts";

const route = routesOf("apps");

const LIMIT = 25;

/** Registers the routes of releases. */
export function releaseRoutes(app: Api, { releaseCommands, write }: Pick<ApiDeps, "releaseCommands"> & Writes): void {
  const path = "/v1/apps/:app_name/releases";

  app.get(
    path,
    route(
      "List an app's releases, newest first",
      { scope: "read" },
      { params: AppParams, querystring: EventsQuery, reply: ReleaseList },
    ),
    async ({ params, query }) => ({
      releases: (await write(({ releases }) => releases.list(params.app_name, query.limit ?? LIMIT))).map(releaseWire),
    }),
  );

  app.post(
    path,
    route(
      "Begin a release: resolve its image, without changing a machine",
      { scope: "deploy", audited: ["image"] },
      { params: AppParams, body: CreateReleaseBody, created: ReleaseReply },
    ),
    async ({ params, body }, reply) =>
      reply
        .code(201)
        .send(
          releaseWire(
            await write(({ releases }) => releases.begin(params.app_name, body.image, body.description ?? "")),
          ),
        ),
  );

  app.post(
    `${path}/:version`,
    route(
      "Record how a release ended, or, with `pending`, that it is still being deployed",
      { scope: "deploy", audited: ["status"] },
      { params: ReleaseParams, body: UpdateReleaseBody, reply: ReleaseReply },
    ),
    async ({ params, body }) => {
      const version = Number(params.version);
      const { status, description = "" } = body;
      if (status === "pending")
        return releaseWire(await write(({ releases }) => releases.renew(params.app_name, version)));
      return releaseWire(await write(({ releases }) => releases.end(params.app_name, version, status, description)));
    },
  );

  const streams = new OpenReplies(app);
  app.post(
    `${path}/:version/command`,
    route(
      "Run the command of a release in a temporary machine and stream its log: one JSON object per line, the last one with `ok`",
      { scope: "deploy" },
      {
        params: ReleaseParams,
        body: ReleaseCommandBody,
        response: streamed(200, NDJSON, "one line per line", ReleaseCommandLine),
      },
    ),
    async ({ params, body }, reply) => {
      const signal = streams.until(reply);
      const output = await releaseCommands.start(params.app_name, Number(params.version), {
        config: body.config,
        timeoutMs: (body.timeout ?? COMMAND_TIMEOUT_S) * 1000,
        signal,
      });
      return streams.send(reply, commandLines(output), signal);
    },
  );
}

async function* commandLines(output: CommandOutput): AsyncGenerator<(LogEntry | CommandEndWire)[], void> {
  for await (const block of output) yield block.map((line) => ("text" in line ? line : endWire(line)));
}

function endWire({ ok, exitCode, reason }: CommandVerdict): CommandEndWire {
  return { ok, exit_code: exitCode, reason };
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
