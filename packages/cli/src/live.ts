/** Shows something again and again until Ctrl-C: `top`, and `--watch`. */
import { setTimeout as delay } from "node:timers/promises";
import { type OptionValues, type Result, timeOption } from "./command.ts";
import type { Context } from "./context.ts";
import { EXIT, failureText, toFailure } from "./failure.ts";
import { interruptible } from "./interrupting.ts";
import { localTime } from "./local-time.ts";
import { write } from "./terminal.ts";
import { shown } from "./visible.ts";

/** Seconds between two looks, unless asked otherwise: as `watch` has it. */
export const INTERVAL_S = 2;

/** The option of commands whose result can be watched. */
export const WATCH = {
  ...timeOption("-w, --watch [time]", "show it again and again, until Ctrl-C", INTERVAL_S, "1m"),
  preset: String(INTERVAL_S),
} as const;

/** Looks once, or with `--watch` until Ctrl-C. */
export async function watched(
  context: Context,
  { watch }: OptionValues<[typeof WATCH]>,
  look: () => Promise<Result>,
): Promise<Result> {
  if (watch === undefined) return look();
  const show = context.json ? jsonLines() : process.stdout.isTTY ? screen() : blocks();
  return repeat(look, { seconds: watch, show });
}

/**
 * Shows the result of every look. It waits for a platform that restarts; any other failure ends it, as does one of
 * the first look. Resolves at Ctrl-C, with its exit code.
 */
export async function repeat(
  look: () => Promise<Result>,
  { seconds, show }: { seconds: number; show(result: Result): Promise<void> },
): Promise<Result> {
  using stop = interruptible("Interrupted.");
  const { signal } = stop;
  let [seen, lost] = [false, false];
  while (!signal.aborted) {
    try {
      const result = await look();
      if (signal.aborted) break;
      await show(result);
      [seen, lost] = [true, false];
    } catch (error) {
      const failure = toFailure(error);
      if (!seen || failure.error !== "unavailable") throw error;
      if (!lost)
        process.stderr.write(`${shown(failureText(failure), process.stderr)} Trying again every ${seconds} s.\n`);
      lost = true;
    }
    await delay(seconds * 1000, undefined, { signal }).catch(() => {}); // aborted
  }
  return { document: undefined, text: "", exitCode: EXIT.interrupted };
}

/** Draws on a terminal, in place. */
export function screen(): (result: Result) => Promise<void> {
  const { stdout } = process;
  let first = true;
  return async ({ text }) => {
    // Some terminals don't know their size.
    const size = { columns: stdout.columns || 80, rows: stdout.rows || 24 };
    await write(`${first ? CLEAR : ""}${frame(shown(text, stdout), size)}`);
    first = false;
  };
}

/** For a pipe: the whole text with its time, whenever something has changed. */
function blocks(): (result: Result) => Promise<void> {
  return onChange(async ({ text }, count) => {
    await write(`${count === 0 ? "" : "\n"}${localTime(new Date())}\n${text}\n`);
  });
}

/** One line whenever something has changed. */
function jsonLines(): (result: Result) => Promise<void> {
  return onChange(({ document }) => write(shown(`${JSON.stringify(document)}\n`, process.stdout)));
}

function onChange(show: (result: Result, count: number) => Promise<void>): (result: Result) => Promise<void> {
  let [last, count]: [string | undefined, number] = [undefined, 0];
  return async (result) => {
    const now = changeKey(result.document);
    if (now !== last) await show(result, count++);
    last = now;
  };
}

/** Equal for two documents between which nothing happened: checks run all the time, and most find the same. */
export function changeKey(document: unknown): string {
  return JSON.stringify(document, (key, value: unknown) =>
    key === "checks" && Array.isArray(value)
      ? value.map(({ name, status }: { name?: unknown; status?: unknown }) => [name, status])
      : value,
  );
}

const HOME = "\x1b[H";
const CLEAR = `${HOME}\x1b[2J`;
const TO_END_OF_LINE = "\x1b[K";
const TO_END_OF_SCREEN = "\x1b[J";

/** A text drawn over the one before: cut to the window, because a line that wraps or scrolls would stay. */
export function frame(text: string, { columns, rows }: { columns: number; rows: number }): string {
  const all = text.split("\n");
  // The last row is the cursor's.
  const room = Math.max(1, rows - 1);
  const more = all.length - room;
  const fit = more <= 0 ? all : [...all.slice(0, room - 1), `… and ${more + 1} more lines`];
  const cut = fit.map((line) => (line.length <= columns ? line : `${line.slice(0, columns - 1)}…`));
  return `${HOME}${cut.map((line) => `${line}${TO_END_OF_LINE}\n`).join("")}${TO_END_OF_SCREEN}`;
}
