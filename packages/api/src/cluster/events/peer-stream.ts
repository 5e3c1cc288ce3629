/** The stream of events between hosts: each tells the others what happens on it. */
import type { IncomingMessage } from "node:http";
import type { PeerClient } from "@hibernaut/cluster";
import type { StreamEvent } from "@hibernaut/domain/stream-event";
import type { Gap, Position, StreamFilter, Told } from "@hibernaut/events";
import { within } from "@hibernaut/lib/async";
import type { Api, ApiCluster, ApiDeps } from "../../deps.ts";
import { OpenReplies } from "../../stream-replies.ts";

const PATH = "/peer/stream";
/** All hosts write these events, because they share what these are about. */
const SHARED = ["app.", "hostname.", "release.", "secret."];
/** How long a host has to begin, in milliseconds. */
const BEGIN_MS = 2000;
/** Heartbeats come every 15 s: a host that is silent for longer is not there, in milliseconds. */
const SILENCE_MS = 40_000;
/** Longer than any event. Bytes. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** What one host asks of another one. */
export interface PeerQuestion {
  since?: number | undefined;
  tail?: number | undefined;
  follow: boolean;
  filter: Omit<StreamFilter, "apps"> & { apps?: readonly string[] | undefined };
}

/** A line of the answer. The last one without `follow` is a position. */
export type PeerLine = { event: StreamEvent } | { gap: Gap } | Position;

/** Registers the route. Only hosts of the cluster see it, so it is in no document. */
export function peerStreamRoute(
  app: Api,
  { connections }: Pick<ApiCluster, "connections">,
  { stream, apps }: Pick<ApiDeps, "stream" | "apps">,
): void {
  const streams = new OpenReplies(app);
  app.get(PATH, { schema: { hide: true } }, (request, reply) => {
    if (!connections.has(request.raw.socket)) return reply.callNotFound();
    const { ask } = request.query as { ask: string };
    const { since, tail, follow, filter } = JSON.parse(ask) as PeerQuestion;
    const signal = streams.until(reply);
    const reach = filter.apps === undefined ? undefined : apps.firstEvents(filter.apps);
    const end = stream.newest();
    const blocks = stream.read({ ...filter, apps: reach }, { since, tail }, { follow, signal, counted: false });
    return streams.send(reply, follow ? lines(blocks) : linesUntil(blocks, end), signal);
  });
}

async function* lines(blocks: AsyncIterable<(Told | Gap | Position)[]>): AsyncGenerator<PeerLine[], void> {
  for await (const block of blocks)
    yield block.flatMap((one): PeerLine[] => {
      if ("at" in one) return [one];
      if (!("event" in one)) return [{ gap: one }];
      return SHARED.some((group) => one.event.type.startsWith(group)) ? [] : [{ event: one.event }];
    });
}

async function* linesUntil(blocks: AsyncIterable<(Told | Gap | Position)[]>, at: number) {
  yield* lines(blocks);
  yield [{ at }];
}

/**
 * Asks a host for its events. Rejects with `host_unreachable` when it does not begin, falls silent or goes away, and with
 * the signal's reason.
 */
export async function* askPeer(
  client: PeerClient,
  host: string,
  question: PeerQuestion,
  given: AbortSignal,
): AsyncGenerator<PeerLine, void> {
  const end = new AbortController();
  const signal = AbortSignal.any([given, end.signal]);
  const path = `${PATH}?ask=${encodeURIComponent(JSON.stringify(question))}`;
  const beginning = within(signal, BEGIN_MS, "the events of a host");
  const late = () => end.abort(beginning.reason);
  beginning.addEventListener("abort", late);
  try {
    const response = await client.send(host, { method: "GET", path, headers: {}, signal });
    beginning.removeEventListener("abort", late);
    if (response.statusCode !== 200) throw new Error(`host ${host} replied ${response.statusCode}`);
    for await (const line of linesIn(response, () => end.abort(new Error(`host ${host} is silent`))))
      if (line !== "") yield JSON.parse(line) as PeerLine;
  } finally {
    beginning.removeEventListener("abort", late);
    end.abort();
  }
}

async function* linesIn(response: IncomingMessage, onSilence: () => void): AsyncGenerator<string, void> {
  let rest = "";
  let timer = setTimeout(onSilence, SILENCE_MS).unref();
  try {
    response.setEncoding("utf8");
    for await (const piece of response as AsyncIterable<string>) {
      clearTimeout(timer);
      timer = setTimeout(onSilence, SILENCE_MS).unref();
      const parts = (rest + piece).split("\n");
      rest = parts.pop() ?? "";
      if (rest.length > MAX_LINE_BYTES) throw new Error("a line of a host is too long");
      yield* parts;
    }
  } finally {
    clearTimeout(timer);
  }
}
