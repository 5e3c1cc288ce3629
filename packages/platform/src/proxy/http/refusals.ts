/** The answers that the proxy gives itself. */
import { messageOf } from "../../lib/text.ts";
import { type Lease, ProxyRefusal } from "../contract.ts";
import { Malformed, TooLarge } from "./grammar.ts";
import { type Answer, field, reasonOf } from "./heads.ts";

/** Codes of the engine. Stable; a Director has its own besides. */
export const REFUSALS = {
  bad_request: 400,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  target_too_long: 414,
  head_too_large: 431,
  internal: 500,
  /** The machine could not be reached. */
  upstream_unreachable: 502,
  /** The app closed the connection without an answer. */
  upstream_closed: 502,
  /** What the app answered is not HTTP, or over a limit. */
  upstream_invalid: 502,
  overloaded: 503,
  shutting_down: 503,
  wake_timeout: 504,
  upstream_timeout: 504,
  version_not_supported: 505,
} as const;

export type RefusalCode = keyof typeof REFUSALS;

/** How a request ended that got no whole answer; in the access log and at the lease. */
export const ENDINGS = {
  /** The client closed its connection first. */
  clientGone: "client_gone",
  /** The client did not read. */
  clientStalled: "client_stalled",
  /** The app died, or fell silent, in the middle of its response; the client's connection was cut. */
  upstreamBroke: "upstream_broke",
  upstreamStalled: "upstream_stalled",
  /** The proxy was closed and its patience was over. */
  cut: "cut",
} as const;

export function refusal(code: RefusalCode, message: string, options?: ErrorOptions & { retryAfterS?: number }) {
  return new ProxyRefusal(REFUSALS[code], code, message, options);
}

/** A machine that runs, and whose port does not answer. */
export function unreachable({ machineId, appName, port }: Lease, cause: unknown): ProxyRefusal {
  const message = `Machine ${machineId} of app ${appName} runs, but nothing answers at its port ${port} (${messageOf(cause)}). The app may have ended its listening, or listen on another port or on 127.0.0.1 only. See: hibernaut machine status ${machineId} --app ${appName}`;
  return refusal("upstream_unreachable", message, { cause });
}

const LARGE = { head: "head_too_large", target: "target_too_long", body: "body_too_large" } as const;

/** What a client is told when `error` came up with its request. */
export function asRefusal(error: unknown): ProxyRefusal {
  if (error instanceof ProxyRefusal) return error;
  if (error instanceof TooLarge) return refusal(LARGE[error.part], error.message);
  if (error instanceof Malformed) return refusal("bad_request", error.message);
  return refusal("internal", "Something went wrong inside the proxy. Its log has the details.", { cause: error });
}

/** The refusal as an answer, and its body. */
export function refusalAnswer({ status, code, message, retryAfterS }: ProxyRefusal, requestId: string) {
  const body = Buffer.from(`${JSON.stringify({ error: code, message, request_id: requestId })}\n`);
  const fields = [
    field("Content-Type", "application/json; charset=utf-8"),
    field("Date", new Date().toUTCString()),
    field("Hibernaut-Request-Id", requestId),
  ];
  if (status === 405) fields.push(field("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
  if (retryAfterS !== undefined) fields.push(field("Retry-After", String(Math.ceil(retryAfterS))));
  const framing = { kind: "length", length: body.length } as const;
  const answer: Answer = { status, reason: reasonOf(status), fields, framing, length: body.length };
  return { answer, body };
}
