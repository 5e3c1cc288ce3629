/** Formats a line of the log for people: time, level, message, and fields that are not in the message. Pure. */
import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];
type Fields = Record<string, unknown>;

/** pino's numbers. */
const LEVELS: Record<number, { name: string; style: Style }> = {
  20: { name: "debug", style: "dim" },
  30: { name: "info", style: "green" },
  40: { name: "warn", style: "yellow" },
  50: { name: "error", style: "red" },
};
const ERROR = 50;
/** Fields that are shown as level, time and message, or that only programs need. */
const LEFT_OUT = new Set(["level", "time", "msg", "err", "request_id", "reqId", "protocol", "client", "bytes_in"]);
/** Clients choose hosts and targets of requests, and nothing in them may move the cursor. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

/**
 * Turns a line of JSON into one for a terminal. Any other line stays as it is.
 *
 * @example
 * readableLine('{"level":30,"time":"2026-11-22T10:00:00.000Z","machine":"3f9c","msg":"the guest is awake"}\n', false);
 * // 10:00:00 info  the guest is awake  machine=3f9c
 */
export function readableLine(line: string, colors: boolean): string {
  const fields = parse(line);
  if (fields === undefined) return line;
  const paint = (style: Style, text: string) => (colors ? styleText(style, text, { validateStream: false }) : text);
  const { name, style } = LEVELS[Number(fields.level)] ?? { name: "info", style: "green" };
  const { message, rest } = typeof fields.target === "string" ? ofRequest(fields) : ofAny(fields);
  const further = Object.entries(rest).filter(
    ([key, value]) => !LEFT_OUT.has(key) && (value ?? "") !== "" && !message.includes(String(value)),
  );
  const extra = further.map(([key, value]) => `${key}=${shown(value)}`).join(" ");
  const head = `${paint("dim", clock(fields.time))} ${paint(style, name.padEnd(5))} ${clean(message)}`;
  return `${head}${extra && `  ${paint("dim", extra)}`}\n${stackOf(fields)}`;
}

function parse(line: string): Fields | undefined {
  try {
    return JSON.parse(line) as Fields;
  } catch {
    return undefined;
  }
}

/** A line of the access log. */
function ofRequest({ method, host, target, status, duration_ms: took, wake, wake_ms: waited, ...rest }: Fields) {
  const woken = wake === "resume" || wake === "cold" ? `, of which ${String(waited)} ms to wake the machine` : "";
  const answer = status === null ? "no answer" : String(status);
  return {
    message: `${String(method)} ${String(host)}${String(target)}: ${answer} after ${String(took)} ms${woken}`,
    rest: { ...(woken !== "" && { wake }), machine: rest.machine, error: rest.error },
  };
}

function ofAny({ msg, err, ...rest }: Fields) {
  const cause = (err as { message?: unknown } | undefined)?.message;
  return { message: typeof cause === "string" ? `${String(msg)}: ${cause}` : String(msg ?? ""), rest };
}

/** Returns the stack of an error. A warning needs only its message. */
function stackOf({ level, err }: Fields): string {
  const stack = (err as { stack?: unknown } | undefined)?.stack;
  if (Number(level) < ERROR || typeof stack !== "string") return "";
  const places = stack.split("\n").filter((text) => /^\s+at /.test(text));
  return places.map((text) => `    ${clean(text.trim())}\n`).join("");
}

/** Returns hours, minutes and seconds in the host's time zone. */
function clock(time: unknown): string {
  return new Date(String(time)).toTimeString().slice(0, 8);
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return clean(/[\s"=]/.test(text) ? JSON.stringify(text) : text);
}

function clean(text: string): string {
  return text.replace(CONTROL, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
