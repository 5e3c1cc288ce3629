/** What follows when the connection to the app broke before the app had answered. Pure. */
import type { ProxyRefusal } from "../contract.ts";
import { MachineLeft, Unsendable } from "./app-request.ts";
import { Malformed } from "./grammar.ts";
import { proxyRefusal } from "./refusals.ts";

/** Methods whose requests may be sent twice (RFC 9110 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

/** Whether a request with this method may be sent twice. */
export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method);
}

/** How it was when the connection broke. */
export interface Broken {
  error: Error;
  /** Whether nothing of the response had arrived, and the request may be sent again as it is. */
  repeatable: boolean;
  /** Whether the connection was kept from an earlier request. */
  reused: boolean;
  /** Whether a new connection was made because a kept one had died. */
  afresh: boolean;
}

/** What to try before the refusal is sent. */
type Remedy = "nothing" | "start again" | "new connection" | "another machine";

/** Returns what may help, and the refusal for when it does not. */
export function afterFailure({ error, repeatable, reused, afresh }: Broken): {
  remedy: Remedy;
  refusal: ProxyRefusal;
} {
  const invalid = invalidExchange(error);
  if (invalid !== undefined) return { remedy: "nothing", refusal: invalid };
  if (error instanceof MachineLeft) {
    const ended = "The machine ended before the app answered. `hibernaut machine events` says why.";
    const refusal = proxyRefusal("upstream_closed", ended, { cause: error });
    return { remedy: repeatable ? "start again" : "nothing", refusal };
  }
  const message = "The app closed the connection without a response. Its logs may say why.";
  const refusal = proxyRefusal("upstream_closed", message, { cause: error });
  if (!repeatable) return { remedy: "nothing", refusal };
  // The app closed a kept connection at the moment it was used: that says nothing against the machine.
  return { remedy: reused && !afresh ? "new connection" : "another machine", refusal };
}

/** The refusal where one side said what the other one's protocol cannot carry: to send it again would not help. */
function invalidExchange(error: Error): ProxyRefusal | undefined {
  if (error instanceof Malformed)
    return proxyRefusal("upstream_invalid", `The app's response is not acceptable HTTP. ${error.message}`);
  if (error instanceof Unsendable)
    return proxyRefusal("bad_request", `The app speaks HTTP/2, which cannot carry this request: ${error.message}.`);
  return undefined;
}
