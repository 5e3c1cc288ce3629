/** The log lines of several apps as one stream. */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { LogEntry } from "@hibernaut/client";

interface Source {
  service: string;
  entries: AsyncIterable<LogEntry>;
}

type ServiceEntry = LogEntry & { service: string };

/** As many lines are read ahead of the terminal. */
const AHEAD = 100;

/** Yields the entries of all as they come. */
export async function* followed(sources: readonly Source[]): AsyncGenerator<ServiceEntry> {
  const all = new PassThrough({ objectMode: true, highWaterMark: AHEAD });
  const pump = async ({ service, entries }: Source) => {
    for await (const entry of entries) {
      if (all.destroyed) return;
      if (!all.write({ ...entry, service })) await once(all, "drain");
    }
  };
  Promise.all(sources.map(pump)).then(
    () => all.end(),
    (error: unknown) => all.destroy(error as Error),
  );
  yield* all as AsyncIterable<ServiceEntry>;
}

/** Yields the entries of all, by their time. */
export async function* sorted(sources: readonly Source[]): AsyncGenerator<ServiceEntry> {
  const all: ServiceEntry[] = [];
  // Each source has its limit, so this is bounded as well.
  for (const { service, entries } of sources) for await (const entry of entries) all.push({ ...entry, service });
  yield* all.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}
