/** Logs on stderr: JSON, a line each, as systemd and container runtimes take them in; on a terminal, lines for people. */
import { type Logger, pino } from "pino";
import { readableLine } from "./log-line.ts";
import type { Settings } from "./settings.ts";

/** What a platform or a proxy has to say, written at once. */
export function openLog(level: string, format: Settings["logFormat"]): Logger {
  const write = lineWriter(format);
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return write === undefined ? pino(options, pino.destination(2)) : pino(options, { write });
}

/** Writes a line of JSON for people; undefined where programs read the log. */
export function lineWriter(format: Settings["logFormat"]): ((line: string) => void) | undefined {
  const { isTTY } = process.stderr;
  if (format === "json" || (format === "auto" && !isTTY)) return undefined;
  const colours = isTTY && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return (line) => void process.stderr.write(readableLine(line, colours));
}
