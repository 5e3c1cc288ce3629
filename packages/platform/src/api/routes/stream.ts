/** `GET /v1/stream`: everything that changes, as server-sent events. */
import type { Static } from "typebox";
import { HibernautError } from "../../domain/errors.ts";
import type { StreamFilter } from "../../stream/filter.ts";
import type { EventStream, Gap, Position, Told } from "../../stream/stream.ts";
import { serverSent } from "../../stream/wire.ts";
import { requireReach } from "../access.ts";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { replies } from "../schemas.ts";
import { EVENT_STREAM, StreamReplies } from "../stream-replies.ts";
import { wordsIn } from "../words.ts";
import { StreamEventWire, StreamQuery } from "./stream.schemas.ts";

/** Browsers connect again after so long, in milliseconds. */
const RETRY_MS = 1_000;

interface StreamDeps extends Pick<ApiDeps, "apps" | "machines"> {
  stream: EventStream;
}

/** Registers the stream. A reply ends when its client disconnects or the platform shuts down. */
export function streamRoutes(app: Api, { stream, apps, machines }: StreamDeps): void {
  const streams = new StreamReplies(app);
  const { default: failure } = replies(200, StreamEventWire);

  app.get(
    "/v1/stream",
    {
      config: { scope: "read", limited: "filtered" },
      schema: {
        tags: ["platform"],
        summary: "Follow everything that changes, as server-sent events",
        querystring: StreamQuery,
        response: {
          200: {
            description:
              "server-sent events, each with the sequence number as its id, and comments to keep the connection open; an event `gap` says that events are no longer kept",
            content: { [EVENT_STREAM]: { schema: StreamEventWire } },
          },
          default: failure,
        },
      },
    },
    ({ query, headers, token }, reply) => {
      if (query.app !== undefined) requireReach(token, query.app);
      const reach = token?.apps ? apps.firstEvents(token.apps) : undefined;
      const filter = { ...filterOf(query, { apps, machines }), apps: reach };
      const since = lastEventId(headers["last-event-id"]) ?? query.since;
      const signal = AbortSignal.any([streams.closing, clientGone(reply)]);
      const follow = query.follow !== "0" && query.follow !== "false";
      const blocks = stream.read(filter, { since, tail: query.tail }, { follow, signal });
      return streams.sendText(reply, serverSentBlocks(blocks), { type: EVENT_STREAM, signal });
    },
  );
}

async function* serverSentBlocks(blocks: AsyncIterable<(Told | Gap | Position)[]>): AsyncGenerator<string, void> {
  // Sent at once, so that the client knows that it is connected.
  yield `retry: ${RETRY_MS}\n\n`;
  for await (const block of blocks) yield block.map(serverSentEvent).join("");
}

function serverSentEvent(one: Told | Gap | Position): string {
  // Browsers take nothing but the number from this, and continue after it.
  if ("at" in one) return `id: ${one.at}\n\n`;
  if ("event" in one) return one.text;
  return serverSent({ id: one.until, type: "gap", data: JSON.stringify({ after: one.after, until: one.until }) });
}

/** Throws `not_found` for an app or machine that does not exist. */
function filterOf(
  { app, machine, type }: Static<typeof StreamQuery>,
  { apps, machines }: Pick<StreamDeps, "apps" | "machines">,
): StreamFilter {
  if (machine !== undefined && app === undefined)
    throw new HibernautError("invalid_argument", "`machine` needs `app`: machines are named within their apps.", {
      field: "machine",
    });
  if (app !== undefined) apps.get(app);
  const id = machine === undefined || app === undefined ? undefined : machines.get(app, machine).record.id;
  return { app, machine: id, types: wordsIn(type) };
}

/** What a browser sends when it connects again. Anything else in this header is ignored. */
function lastEventId(header: string | string[] | undefined): number | undefined {
  const text = [header].flat()[0] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
