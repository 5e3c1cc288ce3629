/** Follows the platform's stream of events, across lost connections. */
import { setTimeout as delay } from "node:timers/promises";
import { ApiError } from "./error.ts";
import type { CallOptions } from "./transport.ts";
import type { StreamEvent } from "./types.ts";

/** The first wait before connecting again, and the longest, in milliseconds. */
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

/** Events that are no longer kept: those after one number, up to another. */
export interface StreamGap {
  type: "gap";
  after: number;
  until: number;
}

/** Which events to follow, and from where. */
export interface EventsOptions extends CallOptions {
  /** Only events of this app. */
  app?: string;
  /** Only events of this machine of the app: id, name, or the beginning of the id. */
  machine?: string;
  /** Types such as `machine.suspended`, or groups such as `machine`. Default: all. */
  type?: string | readonly string[];
  /** Begin after this sequence number; 0 begins with the oldest that is kept. Default: begin with what comes. */
  since?: number;
  /** Begin with the last events, this many, up to 1000. */
  tail?: number;
  /** Called when the connection was lost and is made again. */
  onLost?(error: ApiError): void;
}

/** Opens the stream once: after this sequence number, if there is one. Yields its lines. */
type Open = (since: number | undefined) => AsyncIterable<string>;

/** Where a connection is in the stream: the next one continues there. */
interface Position {
  at: number;
}

/** Reads the events of one connection. */
export async function* readEvents(
  lines: AsyncIterable<string>,
): AsyncGenerator<StreamEvent | StreamGap | Position, void> {
  let gap = false;
  for await (const line of lines) {
    if (line.startsWith("id: ")) yield { at: Number(line.slice("id: ".length)) };
    else if (line.startsWith("event: ")) gap = line === "event: gap";
    else if (line.startsWith("data: ")) {
      const data = JSON.parse(line.slice("data: ".length)) as StreamEvent;
      yield gap ? { ...(data as unknown as StreamGap), type: "gap" } : data;
    }
  }
}

/** Reads events for good, and connects again when the connection is lost. Rejects with what the platform refuses. */
export async function* followEvents(
  open: Open,
  { since, signal, onLost }: Pick<EventsOptions, "since" | "signal" | "onLost">,
): AsyncGenerator<StreamEvent | StreamGap, void> {
  let at = since;
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(LONGEST_RETRY_MS, retryMs * 2)) {
    try {
      // A number comes before its event: a reader who is interrupted here has not had it yet.
      let next = at;
      for await (const one of readEvents(open(at))) {
        retryMs = FIRST_RETRY_MS;
        if ("type" in one) {
          at = next;
          yield one;
        } else {
          at ??= one.at;
          next = one.at;
        }
      }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "unavailable") throw error;
      onLost?.(error);
    }
    await delay(retryMs, undefined, signal ? { signal } : {}).catch(() => {
      throw signal?.reason;
    });
  }
}
