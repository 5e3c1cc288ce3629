/** A reply that shows the progress of some work, line by line, and ends with its result or its error. */
import { setImmediate } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { errorWire, toHibernautError } from "./errors.ts";
import type { OpenReplies } from "./stream-replies.ts";

/** How often progress is sent at most, in milliseconds: nobody reads faster. */
const PAUSE_MS = 100;

/**
 * Sends what `work` tells as lines of JSON; several within a tenth of a second become the last one of each `key`. What `work`
 * rejects with before it has told anything is an ordinary error; after that it is the last line. `work` is aborted when the
 * client goes away or the platform ends.
 */
export async function sendProgress<T>(
  { request, reply, streams }: { request: FastifyRequest; reply: FastifyReply; streams: OpenReplies },
  { key }: { key(line: T): string },
  work: (tell: (line: T) => void, signal: AbortSignal) => Promise<void>,
): Promise<FastifyReply> {
  const signal = streams.until(reply);
  const waiting = new Map<string, T>();
  const told = { next: Promise.withResolvers<void>() };
  const tell = (line: T) => {
    waiting.set(key(line), line);
    told.next.resolve();
  };
  const end: { over: boolean; failure?: unknown } = { over: false };
  const working = work(tell, signal)
    .catch((error: unknown) => {
      end.failure = error;
    })
    .finally(() => {
      end.over = true;
      told.next.resolve();
    });
  await told.next.promise;
  if (end.failure !== undefined && waiting.size === 0) throw end.failure as Error;
  const lines = async function* (): AsyncGenerator<unknown[], void> {
    while (!end.over || waiting.size > 0) {
      const block = [...waiting.values()];
      waiting.clear();
      told.next = Promise.withResolvers();
      if (block.length > 0) yield block;
      if (end.over) continue;
      if (waiting.size === 0) await told.next.promise;
      await Promise.race([working, pause()]);
    }
    if (end.failure !== undefined) yield [errorWire(toHibernautError(end.failure as never, request), request.id)];
  };
  return streams.send(reply, lines(), signal);
}

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS).unref());
  await setImmediate();
}
