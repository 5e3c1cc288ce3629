/** Makes one attempt to deliver a message. The receiver is not trusted: it may be slow, endless, or somewhere else. */
import { request as plain } from "node:http";
import { type RequestOptions, request as secure } from "node:https";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { Attempt } from "./rules.ts";
import { BlockedTarget, guardedLookup, refusedUrl, type TargetPolicy } from "./target.ts";

/** Only the status counts. A receiver that answers with more is not waited for. */
const MAX_RESPONSE_BYTES = 16 * 1024;

/** A message, signed. */
interface Outgoing {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** Where attempts may lead, and how long each may take. */
export interface SendOptions {
  policy: TargetPolicy;
  /** From the lookup of the name to the end of the response. */
  timeoutMs: number;
  userAgent: string;
  /** For tests: authorities in place of those that Node trusts, and how names are resolved. */
  ca?: string;
  lookup?: Parameters<typeof guardedLookup>[1];
}

export type Send = (message: Outgoing, signal: AbortSignal) => Promise<Attempt>;

/** Returns a function that makes an attempt. It rejects only when the signal is aborted. Redirects are not followed. */
export function sender({ policy, timeoutMs, userAgent, ca, lookup }: SendOptions): Send {
  const options = {
    method: "POST",
    // A connection for each attempt, which is checked, and which a receiver cannot keep.
    agent: false,
    lookup: guardedLookup(policy, lookup),
    ...(ca !== undefined && { ca }),
  } as const;
  return async ({ url, headers, body }, signal) => {
    const refused = refusedUrl(url, policy);
    if (refused !== undefined) return { failure: "blocked", reason: refused };
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), timeoutMs);
    const end = () => limit.abort();
    signal.addEventListener("abort", end, { once: true });
    try {
      const sent = { ...headers, "content-type": "application/json", "user-agent": userAgent };
      return await exchange(new URL(url), { ...options, headers: sent, signal: limit.signal }, body);
    } catch (error) {
      signal.throwIfAborted();
      if (limit.signal.aborted)
        return { failure: "timeout", reason: `The receiver did not answer within ${timeoutMs / 1000} s.` };
      return failureOf(error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
    }
  };
}

/** Ends in any case: at the latest with the signal. */
function exchange(
  url: URL,
  { signal, ...options }: RequestOptions & { signal: AbortSignal },
  body: string,
): Promise<Attempt> {
  const request = url.protocol === "https:" ? secure : plain;
  const exchanged = new Promise<Attempt>((resolve, reject) => {
    const closed = () => reject(new Error("the connection was closed"));
    let answered = false;
    const sending = request(url, { ...options, signal }, (response) => {
      answered = true;
      const status = response.statusCode ?? 0;
      const retryAfter = response.headers["retry-after"];
      const done = () => {
        resolve({ status, retryAfter });
        response.destroy();
      };
      // A receiver that ends in the middle of its response may not have kept what it was told.
      response.on("error", reject).on("end", done).on("close", closed);
      if (status < 200 || status >= 300) return done();
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_RESPONSE_BYTES) done();
      });
    });
    // Nobody asked for another protocol. Without this, Node ends the connection and says nothing but that it is closed.
    sending.on("upgrade", ({ statusCode: status = 0 }, socket) => {
      resolve({ status, retryAfter: undefined });
      socket.destroy();
    });
    // After an answer, the response says how it ends, which may be after this.
    sending.on("close", () => answered || closed());
    sending.on("error", reject).end(body);
  });
  return abortable(exchanged, signal);
}

function failureOf(error: unknown): Attempt {
  if (error instanceof BlockedTarget) return { failure: "blocked", reason: error.message };
  const { code } = error as NodeJS.ErrnoException;
  // Several addresses were tried, and each has its own reason.
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const why = messageOf(first) || code || "unknown";
  return { failure: "unreachable", reason: `The receiver could not be reached: ${why.replace(/\.$/, "")}.` };
}
