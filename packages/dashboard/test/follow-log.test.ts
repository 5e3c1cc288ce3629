/** A log that a page follows, across restarts of the platform, pauses, and changes of what is shown. */
import { ApiError, type LogEntry, type LogsOptions } from "@hibernaut/client";
import { describe, expect, test } from "vitest";
import { followLog } from "../src/data/follow-log.ts";
import { type LogChoice, LogLines } from "../src/data/log-lines.ts";

const ALL: LogChoice = { machine: "", stream: "all" };
const LOST = new ApiError({ code: "unavailable", message: "The platform does not answer." });

const line = (text: string, second: number, parts: Partial<LogEntry> = {}): LogEntry => ({
  at: `2026-01-31T14:30:0${second}.000Z`,
  machine: "a1",
  stream: "stdout",
  text,
  ...parts,
});

/** How one request for a log goes: the lines that come, and whether the connection is lost after them. */
type Reply = { lines: LogEntry[]; after: "ends" | "stays" | "is lost" };

/** A platform that answers requests for a log one after the other. It knows times, as the real one does. */
class Replies {
  readonly asked: string[] = [];
  readonly #replies: Reply[];
  constructor(...replies: Reply[]) {
    this.#replies = replies;
  }

  readonly followLogs = (_app: string, options: LogsOptions = {}) => this.#reply("follow", options);
  readonly readLogs = (_app: string, options: LogsOptions = {}) => this.#reply("read", options);

  async *#reply(how: string, { since, limit, signal }: LogsOptions): AsyncGenerator<LogEntry, void> {
    this.asked.push(`${how} ${since ?? limit}`);
    const { lines, after } = this.#replies.shift() ?? { lines: [], after: "stays" };
    yield* lines.filter(({ at }) => since === undefined || at >= since);
    if (after === "is lost") throw LOST;
    if (after === "ends") return;
    // It stays open until the reader leaves.
    await new Promise<void>((resolve) => {
      if (signal?.aborted) resolve();
      signal?.addEventListener("abort", () => resolve());
    });
    signal?.throwIfAborted();
  }
}

/** Follows until a line comes, or until the following ends by itself. */
async function followed(
  api: Replies,
  {
    lines = new LogLines(),
    until,
    choice = ALL,
    follow = true,
    isGone = () => false,
  }: {
    lines?: LogLines;
    until?: string;
    choice?: LogChoice;
    follow?: boolean;
    isGone?(): boolean;
  },
) {
  const end = new AbortController();
  const errors: unknown[] = [];
  await followLog({
    api,
    app: "shop",
    choice,
    lines,
    follow,
    signal: end.signal,
    isGone,
    onChange: () => {
      if (until !== undefined && lines.matching(until, ALL).length > 0) end.abort();
    },
    onError: (error) => void errors.push(error),
    retryMs: 1,
  });
  return { lines, errors, texts: lines.matching("", ALL).map(({ text }) => text) };
}

describe("a log that is followed", () => {
  const [one, two, three] = [line("one", 1), line("two", 2), line("three", 3)];

  test("continues after a restart of the platform that ended the reply in good order, with each line once", async () => {
    const api = new Replies({ lines: [one, two], after: "ends" }, { lines: [one, two, three], after: "stays" });
    const { texts, errors } = await followed(api, { until: "three" });
    expect(texts).toEqual(["one", "two", "three"]);
    expect(api.asked).toEqual(["follow 500", `follow ${two.at}`]);
    expect(errors).toEqual([]);
  });

  test("says that the platform is there again, also when the app is quiet", async () => {
    const quiet = [one];
    const api = new Replies(
      { lines: quiet, after: "is lost" },
      { lines: [], after: "is lost" },
      { lines: quiet, after: "ends" },
      { lines: [one, two], after: "stays" },
    );
    const { texts, errors } = await followed(api, { until: "two" });
    expect(errors).toEqual([LOST, LOST, undefined]);
    expect(texts).toEqual(["one", "two"]);
  });

  test("ends with its machine, and with what the platform refuses", async () => {
    const ended = new Replies({ lines: [one], after: "ends" });
    expect((await followed(ended, { isGone: () => true })).texts).toEqual(["one"]);
    expect(ended.asked).toHaveLength(1);
  });

  test("has every line once, however many came in the same millisecond", async () => {
    const burst = ["a", "b", "c", "c"].map((text) => line(text, 1));
    const seen = burst.slice(1);
    const next = line("d", 1);
    const api = new Replies({ lines: seen, after: "ends" }, { lines: [...burst, next, two], after: "stays" });
    expect((await followed(api, { until: "two" })).texts).toEqual(["b", "c", "c", "d", "two"]);
  });

  test("continues after a pause where it was, and begins again with another choice", async () => {
    const lines = new LogLines();
    await followed(new Replies({ lines: [one, two], after: "stays" }), { lines, until: "two" });
    const again = new Replies({ lines: [one, two, three], after: "stays" });
    expect((await followed(again, { lines, until: "three" })).texts).toEqual(["one", "two", "three"]);
    const error = line("error", 3, { stream: "stderr" });
    const other = new Replies({ lines: [error], after: "stays" });
    const choice = { machine: "", stream: "stderr" } as const;
    expect((await followed(other, { lines, choice, until: "error" })).texts).toEqual(["error"]);
    expect([again.asked, other.asked]).toEqual([[`follow ${two.at}`], ["follow 500"]]);
  });

  test("is filtered while it is paused, and read once more for what it does not have", async () => {
    const error = line("error", 2, { stream: "stderr", machine: "b2" });
    const { lines } = await followed(new Replies({ lines: [one, error], after: "stays" }), { until: "error" });
    for (const choice of [
      { machine: "", stream: "stderr" },
      { machine: "b2", stream: "all" },
    ] as const) {
      expect(lines.covers(choice)).toBe(true);
      expect(lines.matching("", choice).map(({ text }) => text)).toEqual(["error"]);
    }
    const narrow = new LogLines();
    const choice = { machine: "b2", stream: "all" } as const;
    expect(narrow.covers(choice)).toBe(false);
    await followed(new Replies({ lines: [error], after: "ends" }), { lines: narrow, choice, follow: false });
    expect([narrow.covers(choice), narrow.covers(ALL)]).toEqual([true, false]);
  });
});
