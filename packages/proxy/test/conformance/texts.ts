/** Messages in one line each, as outcomes show them. */
import { createHash } from "node:crypto";
import { type Message, statusOf, valueOf } from "./wire.ts";

/** Bodies up to this long are shown as they are. */
const SHORT = 60;

/** A request as the app saw it: `POST / body {x-a: b} + x-trailer: c`. */
export function requestText(request: Message, look: readonly string[], unread: boolean): string {
  const [method, target] = request.line.split(" ");
  if (unread) return `${method} ${target} [unread]`;
  const broken = request.state === "broken" ? " [broken]" : "";
  return `${method} ${target}${parts(request, look)}${broken}`;
}

/** An answer as the client saw it. What has no `X-App` is the proxy's own. */
export function answerText(answer: Message, look: readonly string[]): string {
  const status = statusOf(answer);
  if (status >= 200 && valueOf(answer, "x-app") === undefined) return `refused ${status}`;
  const cut = answer.state === "whole" ? "" : answer.state === "broken" ? " [broken]" : " [cut]";
  return `${status}${parts(answer, look)}${cut}`;
}

/** A body, or what it is known by when it is long. */
export function shown(body: string): string {
  if (body.length <= SHORT) return body.replace(/[^ -~]/g, escaped);
  return `<${body.length} bytes, ${createHash("sha256").update(body, "latin1").digest("hex").slice(0, 8)}>`;
}

function escaped(char: string): string {
  if (char === "\r") return "\\r";
  if (char === "\n") return "\\n";
  return `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

function parts({ body, fields, trailers }: Message, look: readonly string[]): string {
  // Only fields of the same name have an order that matters (RFC 9110 5.3).
  const wanted = look.flatMap((wish) => fields.filter(([name]) => name === wish));
  return [
    body === "" ? "" : ` ${shown(body)}`,
    wanted.length === 0 ? "" : ` {${wanted.map(([name, value]) => `${name}: ${shown(value)}`).join("; ")}}`,
    ...trailers.map(([name, value]) => ` + ${name}: ${value}`),
  ].join("");
}
