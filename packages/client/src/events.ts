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
  /** Called whenever a connection is there, with the sequence number after which it begins. */
  onConnected?(after: number): void;
  /** Milliseconds without any sign of life after which the connection counts as lost. Default: as long as it lasts. */
  silenceMs?: number;
}

/** Opens the stream once: after this sequence number, if there is one. Yields its lines. */
type Open = (since: number | undefined, signal: AbortSignal | undefined) => AsyncIterable<string>;

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
  { since, signal, onLost, onConnected, silenceMs }: Omit<EventsOptions, "app" | "machine" | "type" | "tail">,
): AsyncGenerator<StreamEvent | StreamGap, void> {
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
  since: number | undefined,
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
