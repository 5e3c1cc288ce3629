/** The access log: one line of JSON on stderr for each request, in the same form as the other lines there. */
import { pino } from "pino";
import type { AccessEntry } from "./contract.ts";

/**
 * Lines are written in batches: one write per line would cost as much as forwarding its request, as each wakes another
 * thread. A process that is killed loses the last batch.
 */
const BUFFER_BYTES = 64 * 1024;
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
  const destination = byteDestination();
  // Bytes rather than a growing string: joined strings are copied late, and burden the garbage collector until then.
  let buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let used = 0;
  const flush = () => {
    if (used === 0) return;
    // The destination keeps what it could not write yet.
    destination.write(buffer.subarray(0, used));
    buffer = Buffer.allocUnsafe(BUFFER_BYTES);
    used = 0;
  };
  const timer = setInterval(flush, FLUSH_MS).unref();
  return {
    write(entry) {
      const line = accessLine(entry);
      const most = line.length * MOST_BYTES_A_UNIT;
      if (used + most > BUFFER_BYTES) flush();
      if (most > BUFFER_BYTES) destination.write(Buffer.from(line));
      else used += buffer.write(line, used, "utf8");
    },
    close() {
      clearInterval(timer);
      flush();
    },
  };
}

/** Opens stderr for bytes instead of text, which pino's types leave out. */
function byteDestination(): { write(bytes: Buffer): boolean } {
  const options = { dest: 2, contentMode: "buffer" } as const;
  return pino.destination(options) as unknown as { write(bytes: Buffer): boolean };
}

/**
 * Returns the line for a request, with the field names of access logs that people have tools for. Put together by hand,
 * which takes a third of the time of `JSON.stringify`, and of few parts: this runs for every request.
 */
export function accessLine(entry: AccessEntry): string {
  const ended = isoTime(Math.round(entry.time + entry.durationMs));
  const answer = `"status":${entry.status ?? null},"bytes_in":${entry.bytesIn},"bytes_out":${
    entry.bytesOut
  },"duration_ms":${Math.round(entry.durationMs)}`;
  const id = quoted(entry.requestId);
  return `{"level":${INFO},"time":"${ended}","request_id":${id}${requestPart(entry)}${answer}${machinePart(entry)}`;
}

/** The parts that were made last, if any: those of the next request are usually the same. */
let lastRequest = { method: "", host: "", target: "", httpVersion: "", clientAddress: "", text: "" };
let lastMachine: Pick<AccessEntry, "wake" | "appName" | "machineId" | "error"> & { text: string } = {
  ...{ wake: undefined, appName: "", machineId: "", error: "", text: "" },
};

/** Returns what the client asked for. */
function requestPart({ method, host, target, httpVersion, clientAddress }: AccessEntry): string {
  const last = lastRequest;
  const same = last.text !== "" && last.target === target && last.host === host && last.method === method;
  if (same && last.clientAddress === clientAddress && last.httpVersion === httpVersion) return last.text;
  const text = `,"method":${quoted(method)},"host":${quoted(host)},"target":${quoted(
    target,
  )},"protocol":"HTTP/${httpVersion}","client":${quoted(clientAddress)},`;
  lastRequest = { method, host, target, httpVersion, clientAddress, text };
  return text;
}

/** Returns which machine answered, and the end of the line. */
function machinePart({ wake, appName, machineId, error }: AccessEntry): string {
  const last = lastMachine;
  const same = last.text !== "" && last.wake === wake && last.machineId === machineId && last.appName === appName;
  if (same && last.error === error) return last.text;
  const text = `,"wake":${quoted(wake?.kind)},"wake_ms":${wake?.durationMs ?? null},"app":${quoted(
    appName,
  )},"machine":${quoted(machineId)},"error":${quoted(error)},"msg":"request"}\n`;
  lastMachine = { wake, appName, machineId, error, text };
  return text;
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
