/** The log lines of several apps as one stream. */
import type { LogEntry } from "@hibernaut/client";

interface Source {
  service: string;
  entries: AsyncIterable<LogEntry>;
}

type ServiceEntry = LogEntry & { service: string };

/** Yields the entries of all, by their time; while they are followed, as they come. */
export async function* merged(
  sources: readonly Source[],
  { follow }: { follow: boolean },
): AsyncGenerator<ServiceEntry> {
  const iterators = sources.map(({ service, entries }) => ({ service, next: entries[Symbol.asyncIterator]() }));
  const ask = async (index: number) => ({ index, result: await iterators[index]?.next.next() });
  const pending = new Map(iterators.map((_, index) => [index, ask(index)]));
  if (follow) {
    while (pending.size > 0) {
      const { index, result } = await Promise.race(pending.values());
      if (result === undefined || result.done === true) pending.delete(index);
      else {
        pending.set(index, ask(index));
        yield { ...result.value, service: iterators[index]?.service ?? "" };
      }
    }
    return;
  }
  const heads = new Map<number, LogEntry>();
  for (const [index, asked] of pending) {
    const { result } = await asked;
    if (result !== undefined && result.done !== true) heads.set(index, result.value);
  }
  while (heads.size > 0) {
    const [[index, entry]] = [...heads].sort(([, a], [, b]) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)) as [
      [number, LogEntry],
    ];
    yield { ...entry, service: iterators[index]?.service ?? "" };
    const { result } = await ask(index);
    if (result === undefined || result.done === true) heads.delete(index);
    else heads.set(index, result.value);
  }
}
