/** Follows the platform's stream of events, across lost connections. */
import { delay } from "./delay.ts";
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
  /** Only in a cluster: whose events. */
  host?: string;
  /** Only in a cluster: where the reader continues. */
  position?: string;
}

/** Only in a cluster: the hosts whose events cannot be heard at present. Empty once all are heard again. */
export interface StreamMissing {
  type: "missing";
  hosts: string[];
}

/** What the stream tells. */
export type StreamEntry = StreamEvent | StreamGap | StreamMissing;

/** Where a reader is: after a sequence number, or in a cluster after a `position`. */
export type StreamPosition = number | string;

/** Which events to follow, and from where. */
export interface EventsOptions extends CallOptions {
  /** Only events of this app. */
  app?: string;
  /** Only events of this machine of the app: id, name, or the beginning of the id. */
  machine?: string;
  /** Types such as `machine.suspended`, or groups such as `machine`. Default: all. */
  type?: string | readonly string[];
  /** Begin after this sequence number or position; 0 begins with the oldest that is kept. Default: begin with what comes. */
  since?: StreamPosition;
  /** Begin with the last events, this many, up to 1000. */
  tail?: number;
  /** Called when the connection was lost and is made again. */
  onLost?(error: ApiError): void;
  /** Called whenever a connection is there, with the position after which it begins. */
  onConnected?(after: StreamPosition): void;
  /** Milliseconds without any sign of life after which the connection counts as lost. Default: as long as it lasts. */
  silenceMs?: number;
}

/** Opens the stream once: after this position, if there is one. Yields its lines. */
type Open = (since: StreamPosition | undefined, signal: AbortSignal | undefined) => AsyncIterable<string>;

/** Where a connection is in the stream: the next one continues there. */
interface Position {
  at: StreamPosition;
}

/** Reads the events of one connection. */
export async function* readEvents(lines: AsyncIterable<string>): AsyncGenerator<StreamEntry | Position, void> {
  let kind = "";
  for await (const line of lines) {
    if (line.startsWith("id: ")) {
      const id = line.slice("id: ".length);
      yield { at: /^\d+$/.test(id) ? Number(id) : id };
    } else if (line.startsWith("event: ")) kind = line.slice("event: ".length);
    else if (line.startsWith("data: ")) {
      const data = JSON.parse(line.slice("data: ".length)) as StreamEvent;
      yield kind === "gap" || kind === "missing" ? { ...data, type: kind } : data;
    }
  }
}

/** Reads events for good, and connects again when the connection is lost. Rejects with what the platform refuses. */
export async function* followEvents(
  open: Open,
  { since, signal, onLost, onConnected, silenceMs }: Omit<EventsOptions, "app" | "machine" | "type" | "tail">,
): AsyncGenerator<StreamEntry, void> {
  let at = since;
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(LONGEST_RETRY_MS, retryMs * 2)) {
    try {
      // A number comes before its event: a reader who is interrupted here has not had it yet.
      let next = at;
      let connected = false;
      for await (const one of readEvents(heard(open, at, { signal, silenceMs }))) {
        retryMs = FIRST_RETRY_MS;
        if ("type" in one) {
          at = next;
          yield one;
        } else {
          at ??= one.at;
          next = one.at;
          if (!connected) onConnected?.(one.at);
          connected = true;
        }
      }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "unavailable") throw error;
      onLost?.(error);
    }
    await delay(retryMs, signal);
  }
}

/** Yields the lines of one connection. Fails as `unavailable` when nothing comes for `silenceMs`, not even a heartbeat. */
async function* heard(
  open: Open,
  since: StreamPosition | undefined,
  { signal, silenceMs }: { signal: AbortSignal | undefined; silenceMs: number | undefined },
): AsyncGenerator<string, void> {
  if (silenceMs === undefined) {
    yield* open(since, signal);
    return;
  }
  const silent = new AbortController();
  const wait = () =>
    setTimeout(() => {
      const message = `The platform has sent nothing for ${silenceMs / 1000} s.`;
      silent.abort(new ApiError({ code: "unavailable", message }));
    }, silenceMs);
  let timer = wait();
  try {
    for await (const line of open(since, signal ? AbortSignal.any([signal, silent.signal]) : silent.signal)) {
      clearTimeout(timer);
      timer = wait();
      yield line;
    }
  } finally {
    clearTimeout(timer);
  }
}
