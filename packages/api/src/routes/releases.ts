/** `/v1/apps/{app_name}/releases`: what was deployed and how it ended, as `hibernaut deploy` records it. */
import type { ReleaseRecord } from "@hibernaut/domain/machine";
import { pinned } from "@hibernaut/domain/pinned";
import type { CommandOutput, CommandVerdict, LogEntry } from "@hibernaut/machines";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { EventsQuery, NoQuery, replies } from "../schemas.ts";
import { NDJSON, StreamReplies } from "../stream-replies.ts";
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

const LIMIT = 25;

/** Registers the routes of releases. */
export function releaseRoutes(app: Api, { releaseCommands, write }: Pick<ApiDeps, "releaseCommands"> & Writes): void {
  const path = "/v1/apps/:app_name/releases";
  const tags = ["apps"];

  app.get(
    path,
    {
      config: { scope: "read" },
      schema: {
        tags,
        summary: "List an app's releases, newest first",
        params: AppParams,
        querystring: EventsQuery,
        response: replies(200, ReleaseList),
      },
    },
    async ({ params, query }) => ({
      releases: (await write(({ releases }) => releases.list(params.app_name, query.limit ?? LIMIT))).map(releaseWire),
    }),
  );

  app.post(
    path,
    {
      config: { scope: "deploy", audited: ["image"] },
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
    {
      config: { scope: "deploy", audited: ["status"] },
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
      const { status, description = "" } = body;
      if (status === "pending")
        return releaseWire(await write(({ releases }) => releases.renew(params.app_name, version)));
      return releaseWire(await write(({ releases }) => releases.end(params.app_name, version, status, description)));
    },
  );

  const streams = new StreamReplies(app);
  const { default: failure } = replies(200, ReleaseCommandLine);
  app.post(
    `${path}/:version/command`,
    {
      config: { scope: "deploy" },
      schema: {
        tags,
        summary:
          "Run the command of a release in a temporary machine and stream its log: one JSON object per line, the last one with `ok`",
        params: ReleaseParams,
        querystring: NoQuery,
        body: ReleaseCommandBody,
        response: {
          200: { description: "one line per line", content: { [NDJSON]: { schema: ReleaseCommandLine } } },
          default: failure,
        },
      },
    },
    async ({ params, body }, reply) => {
      const signal = AbortSignal.any([streams.closing, clientGone(reply)]);
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
