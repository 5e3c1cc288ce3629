/** Shapes of the logs of a machine and of an app. */
import { LOG_STREAMS } from "@hibernaut/machines";
import { Type } from "typebox";
import { closed, oneOf, time, wordsOf } from "../schemas.ts";

/** How many lines one request may ask for: a minute of an app that prints 160 lines a second. */
export const MAX_LOG_LINES = 10_000;

/** One line of the reply. */
export const LogLine = Type.Object(
  {
    at: time,
    machine: Type.String({ description: "The machine's id." }),
    stream: oneOf(LOG_STREAMS, { title: "LogStream" }),
    text: Type.String({ description: "The line, without its line break." }),
  },
  { ...closed, title: "LogEntry", description: "One line of a machine's log." },
);

/** `?limit=100&since=10m&stream=stderr&follow=1` */
export const LogsQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_LOG_LINES,
        description: `Return at most this many of the last lines. Default: 100, or ${MAX_LOG_LINES} with \`since\`.`,
      }),
    ),
    since: Type.Optional(
      Type.String({ description: "Return lines from then on: a time (RFC 3339), or an age such as 30s, 10m, 2h, 1d." }),
    ),
    stream: wordsOf(`${LOG_STREAMS.map((stream) => `\`${stream}\``).join(", ")}. Default: all.`),
    follow: Type.Optional(
      Type.Union([Type.Literal("1"), Type.Literal("true"), Type.Literal("0"), Type.Literal("false")], {
        description: "Continue with new lines as they come, until the machine is destroyed. Default: 0.",
      }),
    ),
  },
  closed,
);

/** The same for all machines of an app. */
export const AppLogsQuery = Type.Object(
  {
    ...LogsQuery.properties,
    machine: wordsOf(
      "Machines, by id, name, or the beginning of the id. Default: all, including those created while the request follows.",
    ),
  },
  closed,
);
