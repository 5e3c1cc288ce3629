/** `GET .../logs`: what apps print and what happens to their machines, as a stream of lines. */
import { HibernautError } from "@hibernaut/domain/errors";
import { nearest } from "@hibernaut/lib/nearest";
import { LOG_STREAMS, type LogBlocks, type LogQuery, type LogStream } from "@hibernaut/machines";
import type { FastifyReply } from "fastify";
import type { Static } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { streamed, wordsIn } from "../schemas.ts";
import { sinceMs } from "../since.ts";
import { NDJSON, OpenReplies } from "../stream-replies.ts";
import { AppParams } from "./apps.schemas.ts";
import { AppLogsQuery, LogLine, LogsQuery, MAX_LOG_LINES } from "./logs.schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const LINES = 100;

/** Registers the logs of a machine and of an app. A reply ends when its client disconnects or the platform shuts down. */
export function logRoutes(app: Api, { logs, cluster }: Pick<ApiDeps, "logs" | "cluster">): void {
  const streams = new OpenReplies(app);
  const answer = (reply: FastifyReply, read: (signal: AbortSignal) => LogBlocks): FastifyReply => {
    const signal = streams.until(reply);
    return streams.send(reply, read(signal), signal);
  };
  const response = streamed(200, NDJSON, "one entry per line, and empty lines to keep the connection open", LogLine);

  /** Other hosts of a cluster have the logs of their own machines. */
  const ownOf = async (name: string, words: string[]): Promise<string[]> => {
    if (cluster === undefined) return words;
    const { ownWords } = await import("../cluster/named-machines.ts");
    return ownWords(name, words, cluster);
  };

  app.get(
    "/v1/apps/:app_name/machines/:machine_id/logs",
    routesOf("machines")(
      "Read the logs of a machine",
      { scope: "read" },
      { params: MachineParams, querystring: LogsQuery, response },
    ),
    ({ params, query }, reply) => {
      const wanted = logQuery(query);
      return answer(reply, (signal) =>
        logs.read(params.app_name, { ...wanted, machines: [params.machine_id], signal }),
      );
    },
  );

  app.get(
    "/v1/apps/:app_name/logs",
    routesOf("apps")(
      "Read the logs of an app's machines, ordered by time",
      { scope: "read" },
      { params: AppParams, querystring: AppLogsQuery, response },
    ),
    async ({ params, query }, reply) => {
      const wanted = logQuery(query);
      const named = wordsIn(query.machine);
      const machines = named.length === 0 ? undefined : await ownOf(params.app_name, named);
      return answer(reply, (signal) => logs.read(params.app_name, { ...wanted, machines, signal }));
    },
  );
}

function logQuery(query: Static<typeof LogsQuery>): LogQuery {
  const streams = wordsIn(query.stream).map(logStream);
  return {
    limit: query.limit ?? (query.since === undefined ? LINES : MAX_LOG_LINES),
    follow: query.follow === "1" || query.follow === "true",
    ...(query.since !== undefined && { sinceMs: sinceMs(query.since) }),
    ...(streams.length > 0 && { streams }),
  };
}

function logStream(word: string): LogStream {
  const found = LOG_STREAMS.find((stream) => stream === word);
  if (found !== undefined) return found;
  const near = nearest(word, LOG_STREAMS);
  const hint = near === undefined ? `Use ${LOG_STREAMS.join(", ")}.` : `Did you mean \`${near}\`?`;
  throw new HibernautError("invalid_argument", `\`${word.slice(0, 100)}\` is not a valid \`stream\`. ${hint}`, {
    field: "stream",
    known: LOG_STREAMS,
  });
}
