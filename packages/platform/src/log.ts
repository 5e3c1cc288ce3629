/** Logs to stderr: JSON lines for systemd and container runtimes, readable lines on a terminal. */
import { type Logger, pino } from "pino";
import { readableLine } from "./log-line.ts";
import type { Settings } from "./settings.ts";

/** Opens the log of a platform or a proxy. Lines are written at once. */
export function openLog(level: string, format: Settings["logFormat"]): Logger {
  const write = lineWriter(format);
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return write === undefined ? pino(options, pino.destination(2)) : pino(options, { write });
}

/** Returns a writer that makes lines of JSON readable for people. Undefined when the log is to be written as JSON. */
export function lineWriter(format: Settings["logFormat"]): ((line: string) => void) | undefined {
  const { isTTY } = process.stderr;
  if (format === "json" || (format === "auto" && !isTTY)) return undefined;
  const colors = isTTY && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return (line) => void process.stderr.write(readableLine(line, colors));
}
