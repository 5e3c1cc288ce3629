/** The log lines of several apps as one stream. */
import type { LogEntry } from "@hibernaut/client";

interface Source {
  service: string;
  entries: AsyncIterable<LogEntry>;
}

type ServiceEntry = LogEntry & { service: string };

/** As many lines of one app are read ahead, while the terminal takes those of others. */
const AHEAD = 100;

/** Yields the entries of all as they come. */
export async function* followed(sources: readonly Source[]): AsyncGenerator<ServiceEntry> {
  const ready: ServiceEntry[] = [];
  let open = sources.length;
  let failure: { error: unknown } | undefined;
  let isEnded = false;
  let news = Promise.withResolvers<void>();
  let room = Promise.withResolvers<void>();
  const pump = async ({ service, entries }: Source) => {
    try {
      for await (const entry of entries) {
        while (ready.length >= AHEAD && !isEnded) await room.promise;
        if (isEnded) return;
        ready.push({ ...entry, service });
        news.resolve();
      }
    } catch (error) {
      failure = { error };
    } finally {
      open -= 1;
      news.resolve();
    }
  };
  const pumps = sources.map(pump);
  try {
    while (open > 0 || ready.length > 0) {
      if (failure !== undefined) throw failure.error;
      if (ready.length === 0) await news.promise;
      news = Promise.withResolvers<void>();
      const batch = ready.splice(0);
      room.resolve();
      room = Promise.withResolvers<void>();
      yield* batch;
    }
    await Promise.all(pumps);
    if (failure !== undefined) throw failure.error;
  } finally {
    isEnded = true;
    room.resolve();
  }
}

/** Yields the entries of all, by their time. */
export async function* sorted(sources: readonly Source[]): AsyncGenerator<ServiceEntry> {
  const all: ServiceEntry[] = [];
  // Each source has its limit, so this is bounded as well.
  for (const { service, entries } of sources) for await (const entry of entries) all.push({ ...entry, service });
  yield* all.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}
