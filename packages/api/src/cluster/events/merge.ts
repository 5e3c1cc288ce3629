/** Puts several sources into one. */
import { background } from "@hibernaut/lib/background";

/** Yields what sources that end have, those with the least key first. Each source is sorted already. */
export async function* sorted<T>(
  sources: readonly AsyncGenerator<T, void>[],
  keyOf: (item: T) => string,
): AsyncGenerator<T, void> {
  const heads = await Promise.all(sources.map(async (source) => ({ source, next: await source.next() })));
  try {
    for (;;) {
      let least: { source: AsyncGenerator<T, void>; next: IteratorResult<T, void> } | undefined;
      let value: T | undefined;
      for (const head of heads) {
        if (head.next.done === true) continue;
        if (least !== undefined && keyOf(head.next.value) >= keyOf(value as T)) continue;
        least = head;
        ({ value } = head.next);
      }
      if (least === undefined) return;
      yield value as T;
      least.next = await least.source.next();
    }
  } finally {
    for (const { source } of heads) source.return().catch(() => {}); // its failure concerns nobody any more
  }
}

/** What comes from any of several sources, in the order in which it comes. A source waits until its last item was taken. */
export class Confluence<T> {
  readonly #ready: { item: T; taken(): void }[] = [];
  readonly #signal: AbortSignal;
  #open = 0;
  #closed = false;
  #failure: Error | undefined;
  #wake = (): void => {};

  /** @param signal ends it. The sources end by themselves then. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Adds a source. When it fails, so does the reading. */
  add(source: AsyncIterable<T>): void {
    this.#open += 1;
    background(this.#pump(source), "merging events");
  }

  /** Yields until all sources have ended, or the signal is aborted. */
  async *read(): AsyncGenerator<T, void> {
    const wake = (): void => this.#wake();
    this.#signal.addEventListener("abort", wake);
    try {
      while (!this.#signal.aborted) {
        const next = this.#ready.shift();
        if (next !== undefined) {
          yield next.item;
          next.taken();
        } else if (this.#failure !== undefined) throw this.#failure;
        else if (this.#open === 0) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.#closed = true;
      this.#signal.removeEventListener("abort", wake);
      for (const { taken } of this.#ready.splice(0)) taken();
    }
  }

  async #pump(source: AsyncIterable<T>): Promise<void> {
    try {
      for await (const item of source) {
        if (this.#signal.aborted || this.#closed) return;
        await new Promise<void>((taken) => {
          this.#ready.push({ item, taken });
          this.#wake();
        });
      }
    } catch (error) {
      this.#failure ??= error as Error;
    } finally {
      this.#open -= 1;
      this.#wake();
    }
  }
}
