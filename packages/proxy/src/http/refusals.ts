/** The responses that the proxy gives itself. */
import { messageOf, withoutPeriod } from "@hibernaut/lib/text";
import { type ConnectionKey, type Lease, ProxyRefusal } from "../contract.ts";
import { Malformed, TooLarge } from "./grammar.ts";
import { field, ownAnswer } from "./heads.ts";
import { OWN_WAKE_PAGE, wakePageAnswer } from "./wake-page.ts";

/** Codes of the engine, with their statuses. Stable. The lease provider has more. */
export const REFUSALS = {
  bad_request: 400,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  /** The app sends the request on, and its body was too large to keep. */
  replay_body_too_large: 413,
  target_too_long: 414,
  head_too_large: 431,
  internal: 500,
  /** The machine could not be reached. */
  upstream_unreachable: 502,
  /** The app closed the connection without a response. */
  upstream_closed: 502,
  /** The app's response is not HTTP, or over a limit. */
  upstream_invalid: 502,
  /** The app sends the request on with a field that cannot be understood. */
  replay_invalid: 502,
  overloaded: 503,
  shutting_down: 503,
  /** The machines are on another host, which is away. */
  host_unreachable: 503,
  wake_timeout: 504,
  upstream_timeout: 504,
  version_not_supported: 505,
  /** Apps send the request to each other. */
  replay_loop: 508,
} as const;

type RefusalCode = keyof typeof REFUSALS;

/** How a request ended that got no whole response. In the access log, and told to the lease. */
export const ENDINGS = {
  /** The client closed its connection first. */
  clientGone: "client_gone",
  /** The client stopped reading. */
  clientStalled: "client_stalled",
  /** The app died, or fell silent, in the middle of its response, and the client's connection was cut. */
  upstreamBroke: "upstream_broke",
  upstreamStalled: "upstream_stalled",
  /** The proxy was closed, and the request did not end in time. */
  cut: "cut",
} as const;

/** Returns a refusal with one of the engine's codes. */
export function proxyRefusal(code: RefusalCode, message: string, options?: ErrorOptions & { retryAfterS?: number }) {
  return new ProxyRefusal(REFUSALS[code], code, message, options);
}

/** The refusal for a machine that is running, but whose port does not answer. */
export function unreachableMachine({ machineId, appName, port }: Lease, cause: unknown): ProxyRefusal {
  const message = `Machine ${machineId} of app ${appName} is running, but nothing answers on its port ${port} (${messageOf(cause)}). The app may have stopped listening, or it listens on another port or only on 127.0.0.1. See: hibernaut machine status ${machineId} --app ${appName}`;
  return proxyRefusal("upstream_unreachable", message, { cause });
}

/** Roughly the time, in seconds, after which a host that restarts, or a broken connection to it, is back. */
const HOST_AWAY_RETRY_S = 10;

/** The refusal for a request that only machines of a host could take which is away. */
export function hostUnreachable(app: string, host: string, cause?: unknown): ProxyRefusal {
  const message = `Host ${host}, which has the machines of app ${app} that could answer, cannot be reached. Try again in a while. See: hibernaut cluster status`;
  return proxyRefusal("host_unreachable", message, { cause, retryAfterS: HOST_AWAY_RETRY_S });
}

/** The refusal for an app whose service says that it speaks HTTP/2, and which does not. */
export function notHttp2({ machineId, appName, port }: ConnectionKey, cause: Error): ProxyRefusal {
  const message = `App ${appName} does not speak HTTP/2 without TLS on port ${port} of machine ${machineId} (${withoutPeriod(cause.message)}). Set h2_backend = false for the service, or have the app serve h2c.`;
  return proxyRefusal("upstream_invalid", message, { cause });
}

/** The refusal for a machine that has more connections than one app may have. */
export function tooManyConnections(): ProxyRefusal {
  return proxyRefusal("overloaded", "The app has too many connections. Try again later.", { retryAfterS: 1 });
}

/** The machine is no longer on the host that was asked for it. */
export const MOVED = "moved";

/** What another machine would answer in the same way, or what the client must be told as it is. */
const FINAL: ReadonlySet<string> = new Set(["bad_request", "internal", "waking", "wake_timeout", "upstream_timeout"]);

/** Whether another machine may take a request that the proxy of a host has refused. */
export function mayHelpElsewhere({ code, status }: ProxyRefusal): boolean {
  return code === MOVED || (status >= 500 && !FINAL.has(code));
}

const LARGE = { head: "head_too_large", target: "target_too_long", body: "body_too_large" } as const;

/** Returns what to tell a client whose request ended with `error`. */
export function toProxyRefusal(error: unknown): ProxyRefusal {
  if (error instanceof ProxyRefusal) return error;
  if (error instanceof TooLarge) return proxyRefusal(LARGE[error.part], error.message);
  if (error instanceof Malformed) return proxyRefusal("bad_request", error.message);
  return proxyRefusal("internal", "Something went wrong inside the proxy. Its log has the details.", { cause: error });
}

/** Returns the refusal as a response head, and its body. */
export function refusalAnswer(refusal: ProxyRefusal, requestId: string, wakePage = OWN_WAKE_PAGE) {
  const { status, code, message, retryAfterS, location } = refusal;
  if (refusal.page) return wakePageAnswer(wakePage, requestId);
  const body = Buffer.from(`${JSON.stringify({ error: code, message, request_id: requestId })}\n`);
  const fields = [
    field("Content-Type", "application/json; charset=utf-8"),
    field("Date", new Date().toUTCString()),
    field("Hibernaut-Request-Id", requestId),
  ];
  if (status === 405) fields.push(field("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
  if (retryAfterS !== undefined) fields.push(field("Retry-After", String(Math.ceil(retryAfterS))));
  if (location !== undefined) fields.push(field("Location", location));
  return ownAnswer(status, fields, body);
}
