/** What went wrong at an ACME server, in our words. Pure. */
import { messageOf } from "@hibernaut/lib/text";
import { AuthorityFault } from "./contract.ts";

/** The parts of a reply that say what is wrong. */
interface Reply {
  status: number;
  /** By name in lower case. */
  headers: object;
  /** A problem document (RFC 7807), if the server is well. */
  data?: unknown;
}

/** A nonce that was used up: the library repeats the request with a new one. */
const BAD_NONCE = "urn:ietf:params:acme:error:badNonce";
const RATE_LIMITED = "urn:ietf:params:acme:error:rateLimited";
/** Replies of a server, or of something in front of it, that may be well again soon. */
const BUSY: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

/** Returns what a reply says is wrong. Undefined if nothing is, or if the library handles it. */
export function responseFault({ status, headers, data }: Reply, now: number): AuthorityFault | undefined {
  if (status < 400) return undefined;
  const { type, detail } = problemOf(data);
  if (type === BAD_NONCE) return undefined;
  const retryAfterMs = retryAfter((headers as Record<string, unknown>)["retry-after"], now);
  const limited = BUSY.has(status) || type === RATE_LIMITED;
  const message = detail ?? `it answered with status ${status}`;
  const kind = limited ? "limited" : "refused";
  return new AuthorityFault(kind, `The authority refused: ${message}`, { retryAfterMs, problem: type });
}

/** Returns anything that was thrown as a fault. */
export function faultOf(error: unknown): AuthorityFault {
  if (error instanceof AuthorityFault) return error;
  const { code } = (error ?? {}) as { code?: unknown };
  if (typeof code === "string")
    return new AuthorityFault("unreachable", `The authority cannot be reached: ${messageOf(error) || code}`, {
      cause: error,
    });
  return new AuthorityFault("refused", `The authority refused: ${messageOf(error)}`, { cause: error });
}

/** Returns the milliseconds that `Retry-After` asks for: seconds, or a date (RFC 9110 10.2.3). */
export function retryAfter(value: unknown, now: number): number | undefined {
  if (typeof value !== "string") return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

function problemOf(data: unknown): { type: string | undefined; detail: string | undefined } {
  const { type, detail } = (typeof data === "object" && data !== null ? data : {}) as Record<string, unknown>;
  return {
    type: typeof type === "string" ? type : undefined,
    detail: typeof detail === "string" ? detail : undefined,
  };
}
