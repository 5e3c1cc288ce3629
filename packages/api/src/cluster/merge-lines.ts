/** Puts streams of lines together by the time that each line says. */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { background } from "@hibernaut/lib/background";

/** Lines that arrive within this time of each other are sorted: longer than the way between hosts of a region. */
const WINDOW_MS = 200;
/** Lines kept at a time while a client reads slowly. The hosts wait then. */
const MAX_KEPT = 10_000;

interface Line {
  text: string;
  /** As it says itself. */
  at: string;
  /** On the clock of `performance.now()`. */
  arrived: number;
}

/** Yields the lines of streams that end, sorted, or only the last of them, up to a limit. */
export async function* lastLines(sources: readonly Readable[], limit?: number): AsyncGenerator<string, void> {
  const lines = (await Promise.all(sources.map(readAll))).flat().toSorted(byTime);
  const last = limit === undefined ? lines : lines.slice(Math.max(0, lines.length - limit));
  yield last.map(({ text }) => `${text}\n`).join("");
}

/** Yields the lines of streams as they come, each a moment later, so that those of one moment are sorted. */
export async function* mergeLines(sources: readonly Readable[], signal: AbortSignal): AsyncGenerator<string, void> {
  const kept: Line[] = [];
  const open = new Set(sources);
  const follow = async (source: Readable): Promise<void> => {
    try {
      for await (const text of createInterface({ input: source, crlfDelay: Infinity })) {
        if (text === "") continue;
        kept.push(lineOf(text));
        while (kept.length >= MAX_KEPT && !signal.aborted) await delay(WINDOW_MS);
      }
    } catch {
      // A host went away: the others keep sending.
    } finally {
      open.delete(source);
    }
  };
  for (const source of sources) background(follow(source), "merging lines");
  while (!signal.aborted && (open.size > 0 || kept.length > 0)) {
    const now = performance.now();
    const isDue = ({ arrived }: Line) => open.size === 0 || now - arrived >= WINDOW_MS;
    const due = kept.filter(isDue).toSorted(byTime);
    if (due.length > 0) {
      const rest = kept.filter((line) => !isDue(line));
      kept.splice(0, kept.length, ...rest);
      yield due.map(({ text }) => `${text}\n`).join("");
    } else await delay(WINDOW_MS / 4);
  }
}

async function readAll(source: Readable): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const text of createInterface({ input: source, crlfDelay: Infinity }))
    if (text !== "") lines.push(lineOf(text));
  return lines;
}

function lineOf(text: string): Line {
  const { at } = JSON.parse(text) as { at: string };
  return { text, at, arrived: performance.now() };
}

function byTime(a: Line, b: Line): number {
  return a.at < b.at ? -1 : Number(a.at > b.at);
}
