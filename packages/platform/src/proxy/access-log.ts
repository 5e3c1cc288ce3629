/** The access log: one line of JSON on stderr for each request, in the same form as the other lines there. */
import { pino } from "pino";
import type { AccessEntry } from "./contract.ts";

/**
 * Lines are written in batches: one write per line would cost as much as forwarding its request. A process that is
 * killed loses the last batch.
 */
const BUFFER_BYTES = 16 * 1024;
const FLUSH_MS = 100;
/** Text that needs no escapes in JSON, like nearly everything that is logged. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
/** The most bytes of UTF-8 for one UTF-16 code unit. */
const MOST_BYTES_A_UNIT = 3;
/** pino's number for the level. */
const INFO = 30;

interface AccessLog {
  write(entry: AccessEntry): void;
  /** Writes what has not been written yet. */
  close(): void;
}

/**
 * Opens the access log, which is at level `info`: with a `level` above that, nothing is logged. Lines for people go to
 * `writeLine` one by one, as nobody reads more of them than a terminal can show.
 */
export function openAccessLog(level: string, writeLine?: (line: string) => void): AccessLog {
  if ((pino.levels.values[level] ?? Number.POSITIVE_INFINITY) > INFO) return { write() {}, close() {} };
  if (writeLine !== undefined) return { write: (entry) => writeLine(accessLine(entry)), close() {} };
  const destination = pino.destination(2);
  // Bytes rather than a growing string: joined strings are copied late, and burden the garbage collector until then.
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let used = 0;
  const flush = () => {
    if (used > 0) destination.write(buffer.toString("utf8", 0, used));
    used = 0;
  };
  const timer = setInterval(flush, FLUSH_MS).unref();
  return {
    write(entry) {
      const line = accessLine(entry);
      const most = line.length * MOST_BYTES_A_UNIT;
      if (used + most > BUFFER_BYTES) flush();
      if (most > BUFFER_BYTES) destination.write(line);
      else used += buffer.write(line, used, "utf8");
    },
    close() {
      clearInterval(timer);
      flush();
    },
  };
}

/**
 * Returns the line for a request, with the field names of access logs that people have tools for. Put together by hand,
 * which takes a third of the time of `JSON.stringify`: this runs for every request.
 */
export function accessLine(entry: AccessEntry): string {
  const { requestId, method, host, target, httpVersion, clientAddress, status, wake } = entry;
  const request = `"request_id":${quoted(requestId)},"method":${quoted(method)},"host":${quoted(host)},"target":${quoted(
    target,
  )},"protocol":"HTTP/${httpVersion}","client":${quoted(clientAddress)}`;
  const answer = `"status":${status ?? null},"bytes_in":${entry.bytesIn},"bytes_out":${
    entry.bytesOut
  },"duration_ms":${Math.round(entry.durationMs)}`;
  const machine = `"wake":${quoted(wake?.kind)},"wake_ms":${wake?.durationMs ?? null},"app":${quoted(
    entry.appName,
  )},"machine":${quoted(entry.machineId)}`;
  const ended = isoTime(Math.round(entry.time + entry.durationMs));
  const error = quoted(entry.error);
  return `{"level":${INFO},"time":"${ended}",${request},${answer},${machine},"error":${error},"msg":"request"}\n`;
}

function quoted(text: string | undefined): string {
  if (text === undefined) return "null";
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** The time that was formatted last: on a busy proxy, many requests share a millisecond. */
let written = { time: Number.NaN, text: "" };

function isoTime(time: number): string {
  if (time !== written.time) written = { time, text: new Date(time).toISOString() };
  return written.text;
}
