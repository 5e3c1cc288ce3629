/** Logs on stderr: JSON, a line each, as systemd and container runtimes take them in. */
import { type Logger, pino } from "pino";

/** What a platform or a proxy has to say, written at once. */
export function openLog(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
}
