/** Puts the lines of several hosts together: logs, and the audit log. */
import type { IncomingMessage } from "node:http";
import { PassThrough, Readable } from "node:stream";
import type { PeerClient, View } from "@hibernaut/cluster";
import { abortable, within } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import type { FastifyReply, FastifyRequest } from "fastify";
import { clientGone } from "../client-gone.ts";
import { wordsIn } from "../schemas.ts";
import { sendBlocks } from "../send-blocks.ts";
import { NDJSON } from "../stream-replies.ts";
import { followHost } from "./follow-host.ts";
import { MISSING_HEADER, sentOn } from "./headers.ts";
import { lastLines, mergeLines } from "./merge-lines.ts";

/** Their lines have a machine each. */
const APP_LOGS = "/v1/apps/:app_name/logs";
/** The answers to a token that does not count, or not for this. */
const REFUSED = [401, 403];
/** How long the other hosts have to begin. */
const BEGIN_MS = 2000;

interface MergedStreamDeps {
  client: PeerClient;
  host: string;
  view: Pick<View, "hosts" | "host" | "machines">;
}

/** What requests for lines may ask for. */
interface LinesQuery {
  follow?: string;
  limit?: number;
  machine?: string;
  stream?: string;
}

/**
 * Begins a stream of lines that is for another host, with an empty line: that host waits only for a moment for an answer, and
 * there may be nothing to follow yet.
 */
export function beginAtOnce(reply: FastifyReply, payload: unknown): void {
  if (reply.getHeader("content-type") === NDJSON && payload instanceof PassThrough) payload.write("\n");
}

/** Returns the payload with what the other hosts send. Anything else than a stream of lines stays as it is. */
export async function mergedStream(
  { request, reply, payload }: { request: FastifyRequest; reply: FastifyReply; payload: unknown },
  { client, host, view }: MergedStreamDeps,
): Promise<unknown> {
  if (!isStream(payload) || reply.getHeader("content-type") !== NDJSON) return payload;
  const signal = clientGone(reply);
  const headers = sentOn(request);
  /** Rejects unless the host answers in time, with lines, or that it has none, or none for this token. */
  const ask = async (name: string, path: string): Promise<IncomingMessage | "gone" | "refused"> => {
    const answer = client.send(name, { method: request.method, path, headers, signal });
    try {
      const response = await abortable(answer, within(signal, BEGIN_MS, "the answer of a host"));
      if (response.statusCode === 200) return response;
      response.resume();
      if (response.statusCode === 404) return "gone";
      if (REFUSED.includes(response.statusCode ?? 0)) return "refused";
    } catch (error) {
      answer.then((response) => response.destroy()).catch(() => {}); // too late, or never
      throw error;
    }
    throw new Error(`host ${name} refused`);
  };
  const others = view.hosts().filter(({ name }) => name !== host);
  const asked = await Promise.all(
    others.map(async ({ name, up }) => {
      const answer = up === undefined ? undefined : await ask(name, request.url).catch(() => undefined);
      return { name, answer: answer === "refused" ? undefined : answer };
    }),
  );
  const missing = asked.filter(({ answer }) => answer === undefined).map(({ name }) => name);
  if (missing.length > 0) reply.header(MISSING_HEADER, missing.toSorted().join(", "));
  const { follow, limit } = request.query as LinesQuery;
  const isFollowing = follow === "1" || follow === "true";
  const responses = asked.flatMap(({ name, answer }): Readable[] => {
    if (answer === "gone") return [];
    if (!isFollowing || request.routeOptions.url !== APP_LOGS) return answer === undefined ? [] : [answer];
    const isUp = () => {
      const known = view.host(name);
      return known && known.up !== undefined;
    };
    const again = (since: string) => ask(name, pathSince(request.url, since));
    const machines = () => machinesOn(name, request, view);
    return [Readable.from(followHost({ name, first: answer, ask: again, isUp, machines, signal }))];
  });
  if (responses.length === 0) return payload;
  const out = new PassThrough();
  const sources = [payload, ...responses];
  const blocks = isFollowing ? mergeLines(sources, signal) : lastLines(sources, limit);
  background(
    sendBlocks(blocks, out, { signal, heartbeat: "\n" }).finally(() => sources.forEach((each) => each.destroy())),
    "sending merged lines",
  );
  return out;
}

/** The same path for all lines from then on. */
function pathSince(url: string, since: string): string {
  const { pathname, searchParams } = new URL(url, "http://host");
  searchParams.set("since", since);
  searchParams.delete("limit");
  return `${pathname}?${searchParams.toString()}`;
}

/** The machines of a host that the client reads, unless it wants no lines of the platform. */
function machinesOn(host: string, { params, query }: FastifyRequest, view: Pick<View, "machines">): string[] {
  const { machine, stream } = query as LinesQuery;
  const [words, streams] = [wordsIn(machine), wordsIn(stream)];
  if (streams.length > 0 && !streams.includes("platform")) return [];
  const owned = view.machines((params as { app_name: string }).app_name).filter((one) => one.host === host);
  const isRead = (id: string, name: string) => words.some((word) => name === word || id.startsWith(word));
  return owned.filter(({ id, name }) => words.length === 0 || isRead(id, name)).map(({ id }) => id);
}

function isStream(payload: unknown): payload is Readable {
  return typeof payload === "object" && payload !== null && "pipe" in payload;
}
