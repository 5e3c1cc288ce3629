/** What a reader hears of one other host of the cluster, whatever happens on the way. The other host follows a script. */
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { PeerClient } from "@hibernaut/cluster";
import { EventStream } from "@hibernaut/events";
import { expect, onTestFinished, test } from "vitest";
import { newWorld } from "../../platform/test/helpers/fake-world.ts";
import { EventsEverywhere } from "../src/cluster/events/everywhere.ts";
import { Feed } from "../src/cluster/events/feed.ts";
import { type Item, type News, peerHistory, peerNews } from "../src/cluster/events/host-events.ts";
import type { PeerLine, PeerQuestion } from "../src/cluster/events/peer-stream.ts";

const WANTED = { filter: { types: [] }, reach: () => undefined };

function told(sequence: number, app = "shop"): PeerLine {
  return { event: { sequence, at: "2026-01-31T14:30:00.000Z", type: "app.noted", app, machine: null, data: {} } };
}

function numbersOf(items: readonly Item[]): number[] {
  return items.map((item) => ("event" in item ? item.event.sequence : -item.gap.until));
}

/** A host that gives these answers when it is asked for its past, and then tells what happens. */
class Host {
  readonly host = "b";
  readonly questions: PeerQuestion[] = [];
  readonly feed: Feed;
  readonly #answers: (PeerLine | Error)[][];
  readonly #lines: PeerLine[] = [];
  #wake = (): void => {};

  constructor(answers: (PeerLine | Error)[][] = []) {
    this.#answers = answers;
    const tell = this.#tell.bind(this);
    this.feed = new Feed((_since, signal) => tell(signal));
    onTestFinished(() => this.feed.close());
  }

  happens(line: PeerLine): void {
    this.#lines.push(line);
    this.#wake();
  }

  readonly isMember = (): boolean => true;
  readonly ask = (question: PeerQuestion): AsyncGenerator<PeerLine, void> => this.#answer(question);

  async *#answer(question: PeerQuestion): AsyncGenerator<PeerLine, void> {
    this.questions.push(question);
    for (const line of this.#answers.shift() ?? []) {
      if (line instanceof Error) throw line;
      yield line;
    }
  }

  async *#tell(signal: AbortSignal): AsyncGenerator<PeerLine, void> {
    signal.addEventListener("abort", () => this.#wake());
    while (!signal.aborted) {
      const line = this.#lines.shift();
      if (line !== undefined) yield line;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Reads what comes of a host until the test ends. */
function listen(host: Host, start: { at: number; unread?: boolean }) {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const { signal } = end;
  const source = peerNews(host, host.feed, WANTED, { unread: false, isMissing: false, signal, ...start });
  const heard: News[] = [];
  return {
    heard,
    /** Reads on until it holds. */
    async until(holds: () => boolean): Promise<void> {
      while (!holds()) {
        const next = await source.next();
        if (next.done === true) throw new Error("the news ended");
        heard.push(next.value);
      }
    },
    numbers: () => numbersOf(heard.flatMap(({ items }) => items)),
    missing: () => heard.flatMap(({ missing }) => (missing === undefined ? [] : [missing])),
  };
}

test("what happens while the past is read counts as read", async () => {
  const host = new Host([[{ at: 1 }, told(2), told(3), told(4), { at: 2 }]]);
  const past = peerHistory(host, WANTED, { since: 1 }, AbortSignal.timeout(10_000));
  const items: Item[] = [];
  let next = await past.next();
  for (; next.done !== true; next = await past.next()) items.push(next.value);
  expect(numbersOf(items)).toEqual([2, 3, 4]);
  expect(next.value).toBe(4);
});

test("a reader of a host whose past could not be read at first asks it again, not the memory of other readers", async () => {
  // The events 2 and 3 are of an earlier app of the same name, which the host leaves out.
  const host = new Host([[{ at: 1 }, told(4), { at: 4 }]]);
  for (const line of [{ at: 1 }, told(2), told(3), told(4)]) host.happens(line);
  while (host.feed.at !== 4) await setImmediate();
  const reader = listen(host, { at: 1, unread: true });
  await reader.until(() => reader.numbers().includes(4));
  host.happens(told(5));
  await reader.until(() => reader.numbers().includes(5));
  expect(reader.numbers()).toEqual([4, 5]);
  expect(host.questions).toMatchObject([{ since: 1, follow: false }]);
});

test("a host whose missed events cannot be read is named, and they come with the next attempt, once", async () => {
  const host = new Host([
    [{ at: 1 }, told(2), new Error("the connection broke")],
    [{ at: 2 }, told(3), { at: 3 }],
  ]);
  host.happens({ at: 1 });
  const reader = listen(host, { at: 1 });
  host.happens({ gap: { after: 1, until: 3 } });
  await reader.until(() => reader.missing().includes(true));
  await reader.until(() => reader.missing().at(-1) === false);
  host.happens(told(4));
  await reader.until(() => reader.numbers().includes(4));
  expect(reader.numbers()).toEqual([2, 3, 4]);
  expect(reader.missing()).toEqual([true, false]);
  expect(host.questions.map(({ since }) => since)).toEqual([1, 2]);
});

test("the past of a host that ends the connection, because it waits for a slow reader, is read to its end", async () => {
  const world = await newWorld();
  onTestFinished(() => world.dispose());
  const host = new Host([
    [{ at: 0 }, told(1), told(2), new Error("the connection broke")],
    [{ at: 2 }, told(3), { at: 3 }],
  ]);
  const send = async (_host: string, { path }: { path: string }) => {
    const { searchParams } = new URL(path, "http://b");
    const answer = host.ask(JSON.parse(searchParams.get("ask") ?? "") as PeerQuestion);
    const lines = async function* () {
      for await (const line of answer) yield `${JSON.stringify(line)}\n`;
    };
    const body = Readable.from(lines(), { highWaterMark: 1 });
    return Object.assign(body, { statusCode: 200 }) as unknown as IncomingMessage;
  };
  const members = ["a", "b"].map((name) => ({ name, up: undefined }));
  const everywhere = new EventsEverywhere({
    host: "a",
    view: { hosts: () => members, host: () => members[1], subscribe: () => () => {} } as never,
    client: { send } as unknown as PeerClient,
    stream: new EventStream(world.store.outbox),
  });
  const asked = { filter: WANTED.filter, reach: WANTED.reach, since: "a:0,b:0", tail: undefined, follow: false };
  let text = "";
  for await (const piece of everywhere.read(asked, AbortSignal.timeout(10_000))) text += piece;
  expect([...text.matchAll(/"sequence":(\d+)/g)].map(([, number]) => Number(number))).toEqual([1, 2, 3]);
  expect(text).not.toContain("event: missing");
  expect(host.questions.map(({ since }) => since)).toEqual([0, 2]);
});
