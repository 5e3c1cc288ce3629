/** `GET .../logs`: what apps print, and what becomes of their machines, as a stream of lines. */
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { Static } from "typebox";
import { HibernautError } from "../../domain/errors.ts";
import { LOG_STREAMS, type LogStream } from "../../machines/logs/entry.ts";
import type { LogQuery } from "../../machines/logs/query.ts";
import type { LogBlocks } from "../../machines/service.ts";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { nearest } from "../../lib/nearest.ts";
import { replies } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import { AppLogsQuery, LogLine, LogsQuery, MAX_LOG_LINES } from "./logs.schemas.ts";
import { MachineParams } from "./machines.schemas.ts";
import { sendLines } from "../send-lines.ts";
import { sinceMs } from "../since.ts";

const NDJSON = "application/x-ndjson";
const LINES = 100;

/** Registers the logs of a machine and of an app. A client that goes away ends its own, the end of the platform all. */
export function logRoutes(app: Api, { machines }: ApiDeps): void {
  const closing = new AbortController();
  const open = new Set<Promise<void>>();
  app.addHook("preClose", async () => {
    closing.abort();
    await Promise.all(open);
    // What was written leaves before the server cuts its connections.
    await setImmediate();
  });
  const answer = (reply: FastifyReply, read: (signal: AbortSignal) => LogBlocks): PassThrough => {
    const signal = AbortSignal.any([closing.signal, clientGone(reply)]);
    const blocks = read(signal);
    const out = new PassThrough();
    const sending = sendLines(blocks, out, { signal }).finally(() => open.delete(sending));
    open.add(sending);
    return out;
  };
  const { default: failure } = replies(200, LogLine);
  const response = {
    200: { description: "an entry a line, and empty lines", content: { [NDJSON]: { schema: LogLine } } },
    default: failure,
  };

  app.get(
    "/v1/apps/:app_name/machines/:machine_id/logs",
    {
      schema: {
        tags: ["machines"],
        summary: "What a machine's app printed, and what became of the machine",
        params: MachineParams,
        querystring: LogsQuery,
        response,
      },
    },
    ({ params, query }, reply) => {
      const wanted = logQuery(query);
      const lines = answer(reply, (signal) => machines.logs(params.app_name, [params.machine_id], wanted, signal));
      return reply.header("cache-control", "no-store").type(NDJSON).send(lines);
    },
  );

  app.get(
    "/v1/apps/:app_name/logs",
    {
      schema: {
        tags: ["apps"],
        summary: "The logs of an app's machines, in the order of time",
        params: AppParams,
        querystring: AppLogsQuery,
        response,
      },
    },
    ({ params, query }, reply) => {
      const wanted = logQuery(query);
      const named = words(query.machine);
      const ids = named.length === 0 ? undefined : named;
      const lines = answer(reply, (signal) => machines.logs(params.app_name, ids, wanted, signal));
      return reply.header("cache-control", "no-store").type(NDJSON).send(lines);
    },
  );
}

function logQuery(query: Static<typeof LogsQuery>): LogQuery {
  const streams = words(query.stream).map(logStream);
  return {
    limit: query.limit ?? (query.since === undefined ? LINES : MAX_LOG_LINES),
    follow: query.follow === "1" || query.follow === "true",
    ...(query.since !== undefined && { sinceMs: sinceMs(query.since) }),
    ...(streams.length > 0 && { streams }),
  };
}

/** Repeated, comma separated or both. */
function words(query: string | string[] | undefined): string[] {
  const parts = [query ?? []].flat().flatMap((part) => part.split(","));
  return parts.map((word) => word.trim()).filter((word) => word !== "");
}

function logStream(word: string): LogStream {
  const found = LOG_STREAMS.find((stream) => stream === word);
  if (found !== undefined) return found;
  const near = nearest(word, LOG_STREAMS);
  const hint = near === undefined ? `Known streams are ${LOG_STREAMS.join(", ")}.` : `Did you mean \`${near}\`?`;
  throw new HibernautError("invalid_argument", `\`stream\` knows no \`${word.slice(0, 100)}\`. ${hint}`, {
    field: "stream",
    known: LOG_STREAMS,
  });
}
