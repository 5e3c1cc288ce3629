/** `GET /v1/stream`: everything that changes, as server-sent events. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type EventStream, type Gap, type Position, type StreamFilter, serverSent, type Told } from "@hibernaut/events";
import type { Static } from "typebox";
import { requireReach } from "../access.ts";
import type { EventsEverywhere } from "../cluster/events/everywhere.ts";
import { POSITION_PATTERN } from "../cluster/events/positions.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { streamed, wordsIn } from "../schemas.ts";
import { EVENT_STREAM, OpenReplies } from "../stream-replies.ts";
import { StreamEventWire, StreamQuery } from "./stream.schemas.ts";

const route = routesOf("platform");

const POSITION = new RegExp(POSITION_PATTERN);
/** Browsers connect again after so long, in milliseconds. */
const RETRY_MS = 1_000;
/**
 * Where a browser is that sends a position in a cluster to a host that has left it. Browsers repeat the header
 * forever, so the request is not refused: they are told of a gap, as with every number that this host has not come to.
 */
const UNKNOWN_POSITION = Number.MAX_SAFE_INTEGER;

interface StreamDeps extends Pick<ApiDeps, "apps" | "machines" | "tokens" | "cluster"> {
  stream: EventStream;
}

/** Registers the stream. A reply ends when its client disconnects or the platform shuts down. */
export function streamRoutes(app: Api, deps: StreamDeps): void {
  const { stream, apps, cluster } = deps;
  const streams = new OpenReplies(app);
  let everywhere: EventsEverywhere | undefined;

  app.get(
    "/v1/stream",
    route(
      "Follow everything that changes, as server-sent events",
      { scope: "read", limited: "filtered" },
      {
        querystring: StreamQuery,
        response: streamed(
          200,
          EVENT_STREAM,
          "server-sent events, each with the sequence number as its id, and comments to keep the connection open; an event `gap` says that events are no longer kept, and in a cluster an event `missing` which `hosts` cannot be heard at present",
          StreamEventWire,
        ),
      },
    ),
    async ({ query, headers, token }, reply) => {
      if (query.app !== undefined) requireReach(token, query.app);
      const reach = token?.apps ? apps.firstEvents(token.apps) : undefined;
      const filter = { ...(await filterOf(query, deps)), apps: reach };
      const last = lastEventId(headers["last-event-id"]);
      const since = last ?? query.since;
      const signal = streams.until(reply);
      const follow = query.follow !== "0" && query.follow !== "false";
      const { tail } = query;
      if (cluster !== undefined) {
        const { EventsEverywhere } = await import("../cluster/events/everywhere.ts");
        everywhere ??= new EventsEverywhere({ ...cluster, host: cluster.shared.host, stream });
        // What is shared is also told of tokens: those of a deleted app do not reach its successor.
        const reachNow = () => (token?.apps ? (deps.tokens.get(token.id)?.apps ?? []) : undefined);
        const blocks = everywhere.read({ filter, reach: reachNow, since, tail, follow }, signal);
        return streams.sendText(reply, begun(blocks), { type: EVENT_STREAM, signal });
      }
      const start = last?.includes(":") === true ? UNKNOWN_POSITION : numberOf(since);
      const blocks = stream.read(filter, { since: start, tail }, { follow, signal });
      return streams.sendText(reply, begun(serverSentBlocks(blocks)), { type: EVENT_STREAM, signal });
    },
  );
}

async function* begun(blocks: AsyncIterable<string>): AsyncGenerator<string, void> {
  // Sent at once, so that the client knows that it is connected.
  yield `retry: ${RETRY_MS}\n\n`;
  yield* blocks;
}

async function* serverSentBlocks(blocks: AsyncIterable<(Told | Gap | Position)[]>): AsyncGenerator<string, void> {
  for await (const block of blocks) yield block.map(serverSentEvent).join("");
}

function serverSentEvent(one: Told | Gap | Position): string {
  // Browsers take nothing but the number from this, and continue after it.
  if ("at" in one) return `id: ${one.at}\n\n`;
  if ("event" in one) return one.text;
  return serverSent({ id: one.until, type: "gap", data: JSON.stringify({ after: one.after, until: one.until }) });
}

/** Rejects with `not_found` for an app or machine that does not exist. */
async function filterOf(
  { app, machine, type }: Static<typeof StreamQuery>,
  { apps, machines, cluster }: Pick<StreamDeps, "apps" | "machines" | "cluster">,
): Promise<StreamFilter> {
  if (machine !== undefined && app === undefined)
    throw new HibernautError("invalid_argument", "`machine` needs `app`: machines are named within their apps.", {
      field: "machine",
    });
  if (app !== undefined) apps.get(app);
  const types = wordsIn(type);
  if (machine === undefined || app === undefined) return { app, machine: undefined, types };
  if (cluster !== undefined) {
    const { namedMachine } = await import("../cluster/named-machines.ts");
    const found = await namedMachine(app, machine, cluster);
    if (found !== undefined) return { app, machine: found.id, types };
  }
  return { app, machine: machines.get(app, machine).record.id, types };
}

/** Throws `invalid_argument` for a position in a cluster: this host is alone. */
function numberOf(since: string | undefined): number | undefined {
  if (since === undefined || !since.includes(":")) return since === undefined ? undefined : Number(since);
  const message = `\`since=${since.slice(0, 80)}\` is a position in a cluster, and this host is in none. Use a sequence number.`;
  throw new HibernautError("invalid_argument", message, { field: "since" });
}

/** What a browser sends when it connects again. Anything else in this header is ignored. */
function lastEventId(header: string | string[] | undefined): string | undefined {
  const text = [header].flat()[0] ?? "";
  return POSITION.test(text) ? text : undefined;
}
