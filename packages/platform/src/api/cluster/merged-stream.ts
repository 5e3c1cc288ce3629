/** Puts the lines of several hosts together: logs, and the audit log. */
import type { IncomingMessage } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { View } from "../../cluster/cluster.ts";
import type { PeerClient } from "../../cluster/peer-client.ts";
import { within } from "../../lib/async.ts";
import { clientGone } from "../client-gone.ts";
import { sendBlocks } from "../send-blocks.ts";
import { NDJSON } from "../stream-replies.ts";
import { askerOf } from "./asker.ts";
import { MISSING_HEADER, sentOn } from "./headers.ts";
import { lastLines, mergeLines } from "./merge-lines.ts";

/** How long the other hosts have to begin. */
const BEGIN_MS = 2000;

interface MergedStreamDeps {
  client: PeerClient;
  host: string;
  view: Pick<View, "hosts">;
}

/** Returns the payload with what the other hosts send. Anything else than a stream of lines stays as it is. */
export async function mergedStream(
  { request, reply, payload }: { request: FastifyRequest; reply: FastifyReply; payload: unknown },
  { client, host, view }: MergedStreamDeps,
): Promise<unknown> {
  if (!isStream(payload) || reply.getHeader("content-type") !== NDJSON) return payload;
  const signal = clientGone(reply);
  const headers = sentOn(request.headers, askerOf(request));
  const beginning = within(signal, BEGIN_MS, "the answer of a host");
  const missing: string[] = [];
  const ask = async (name: string, isUp: boolean): Promise<IncomingMessage[]> => {
    if (!isUp) {
      missing.push(name);
      return [];
    }
    const { method, url: path } = request;
    const answer = client.send(name, { method, path, headers, signal });
    try {
      const response = await Promise.race([answer, rejected(beginning)]);
      if (response.statusCode === 200) return [response];
      response.resume();
      if (response.statusCode !== 404) missing.push(name);
    } catch {
      answer.then((response) => response.destroy()).catch(() => {}); // too late, or never
      missing.push(name);
    }
    return [];
  };
  const others = view.hosts().filter(({ name }) => name !== host);
  const responses = (await Promise.all(others.map(({ name, up }) => ask(name, up !== undefined)))).flat();
  if (missing.length > 0) reply.header(MISSING_HEADER, missing.toSorted().join(", "));
  if (responses.length === 0) return payload;
  const out = new PassThrough();
  const sources = [payload, ...responses];
  const { follow, limit } = request.query as { follow?: string; limit?: number };
  const isFollowing = follow === "1" || follow === "true";
  const blocks = isFollowing ? mergeLines(sources, signal) : lastLines(sources, limit);
  void sendBlocks(blocks, out, { signal, heartbeat: "\n" }).finally(() => sources.forEach((each) => each.destroy()));
  return out;
}

function isStream(payload: unknown): payload is Readable {
  return typeof payload === "object" && payload !== null && "pipe" in payload;
}

function rejected(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
