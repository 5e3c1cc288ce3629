/** Logs of sandboxes, which are those of their machines: what their image's program prints, and what happens to them. */
import type { BuildLogLevel } from "@hibernaut/domain/build";
import type { LogEntry } from "@hibernaut/machines";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Static } from "typebox";
import { logPage } from "../life/log-page.ts";
import { type ControlDeps, goneSignal } from "./deps.ts";
import { FirstLogsQuery, LogsQuery } from "./log-schemas.ts";
import { SandboxParams } from "./schemas.ts";

/** The last lines of a machine among which clients look. */
const MOST_LINES = 5_000;
/** What E2B's command line tells apart, by its first word. */
const LOGGERS: Readonly<Record<LogEntry["stream"], string>> = {
  stdout: "program",
  stderr: "program",
  hooks: "hooks",
  platform: "hibernaut",
};

interface LogLine {
  timestamp: string;
  level: BuildLogLevel;
  message: string;
  fields: Record<string, string>;
}

export function logRoutes(app: FastifyInstance, { needs, sandboxes }: ControlDeps): void {
  const linesOf = async (appName: string, id: string, reply: FastifyReply): Promise<LogLine[]> => {
    sandboxes.get(appName, id);
    const query = { machines: [id], limit: MOST_LINES, signal: goneSignal(reply) };
    const lines: LogLine[] = [];
    for await (const block of needs.resources.logs.read(appName, query)) lines.push(...block.map(lineOf));
    return lines;
  };

  app.get<{ Params: Static<typeof SandboxParams>; Querystring: Static<typeof FirstLogsQuery> }>(
    "/sandboxes/:sandboxID/logs",
    { schema: { params: SandboxParams, querystring: FirstLogsQuery } },
    async ({ sandboxApp, params: { sandboxID }, query: { start, limit } }, reply) => {
      const cursor = start === undefined ? {} : { cursor: start };
      const logEntries = logPage(await linesOf(sandboxApp, sandboxID, reply), { ...cursor, limit });
      // As E2B's own command line reads it: each line is JSON once more.
      const logs = logEntries.map(({ timestamp, level, message, fields }) => ({
        timestamp,
        line: JSON.stringify({ level, message, ...fields }),
      }));
      return { logs, logEntries };
    },
  );
  app.get<{ Params: Static<typeof SandboxParams>; Querystring: Static<typeof LogsQuery> }>(
    "/v2/sandboxes/:sandboxID/logs",
    { schema: { params: SandboxParams, querystring: LogsQuery } },
    async ({ sandboxApp, params: { sandboxID }, query }, reply) => ({
      logs: logPage(await linesOf(sandboxApp, sandboxID, reply), query),
    }),
  );
}

function lineOf({ at, stream, text }: LogEntry): LogLine {
  const level = stream === "stderr" ? "warn" : "info";
  return { timestamp: at, level, message: text, fields: { logger: LOGGERS[stream], stream } };
}
