/** The access log: a line of JSON on stderr for each request, in the shape of the other lines there. */
import { pino } from "pino";
import type { AccessEntry } from "./contract.ts";

/**
 * Lines are written together: one write for each would cost as much as forwarding its request. A process that is
 * killed loses those of the last moment.
 */
const BUFFER_CHARS = 8 * 1024;
const FLUSH_MS = 100;
/** pino's number for it. */
const INFO = 30;

export interface AccessLog {
  write(entry: AccessEntry): void;
  /** Writes what is left. */
  close(): void;
}

/** Logs at level `info`; with a `level` above that, nothing. */
export function openAccessLog(level: string): AccessLog {
  if ((pino.levels.values[level] ?? Number.POSITIVE_INFINITY) > INFO) return { write() {}, close() {} };
  const destination = pino.destination(2);
  let lines = "";
  const flush = () => {
    if (lines !== "") destination.write(lines);
    lines = "";
  };
  const timer = setInterval(flush, FLUSH_MS).unref();
  return {
    write(entry) {
      lines += `${JSON.stringify(accessLine(entry))}\n`;
      if (lines.length > BUFFER_CHARS) flush();
    },
    close() {
      clearInterval(timer);
      flush();
    },
  };
}

/** In the words of the access logs that people have tools for. */
export function accessLine(entry: AccessEntry): object {
  return {
    level: INFO,
    time: isoTime(Math.round(entry.time + entry.durationMs)),
    request_id: entry.requestId,
    method: entry.method,
    host: entry.host,
    target: entry.target,
    protocol: `HTTP/${entry.httpVersion}`,
    client: entry.clientAddress,
    status: entry.status ?? null,
    bytes_in: entry.bytesIn,
    bytes_out: entry.bytesOut,
    duration_ms: Math.round(entry.durationMs),
    wake: entry.wake?.kind ?? null,
    wake_ms: entry.wake?.durationMs ?? null,
    app: entry.appName ?? null,
    machine: entry.machineId ?? null,
    error: entry.error ?? null,
    msg: "request",
  };
}

/** The last time that was written out: on a busy proxy many requests share a millisecond. */
let written = { time: Number.NaN, text: "" };

function isoTime(time: number): string {
  if (time !== written.time) written = { time, text: new Date(time).toISOString() };
  return written.text;
}
