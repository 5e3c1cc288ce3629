/** Logs to stderr: JSON lines for systemd and container runtimes, readable lines on a terminal. */
import { isHibernautError } from "@hibernaut/domain/errors";
import { isHostTrouble } from "@hibernaut/lib/absence";
import type { Settings } from "@hibernaut/settings";
import { type Logger, pino, stdSerializers } from "pino";
import { readableLine } from "./log-line.ts";

/** Opens the log of a platform or a proxy. Lines are written at once. */
export function openLog(level: string, format: Settings["logFormat"]): Logger {
  const write = lineWriter(format);
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: errorFields } };
  return write === undefined ? pino(options, pino.destination(2)) : pino(options, { write });
}

/**
 * What a line says about an error. Where the host or its disk is at fault, the stack says nothing, and such errors come again
 * and again: their message is enough.
 */
export function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (!isHostTrouble(error) && !isHibernautError(error, "unavailable")) return stdSerializers.err(error);
  const { code } = error as { code?: unknown };
  return { type: error.name, message: error.message, ...(typeof code === "string" && { code }) };
}

/** Returns a writer that makes lines of JSON readable for people. Undefined when the log is to be written as JSON. */
export function lineWriter(format: Settings["logFormat"]): ((line: string) => void) | undefined {
  const { isTTY } = process.stderr;
  if (format === "json" || (format === "auto" && !isTTY)) return undefined;
  const colors = isTTY && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return (line) => void process.stderr.write(readableLine(line, colors));
}
