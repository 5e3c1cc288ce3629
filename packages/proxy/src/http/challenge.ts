/** The HTTP-01 challenges of certificate authorities (RFC 8555 8.3). Pure. */
import { type Answer, field, ownAnswer } from "./heads.ts";

/** Paths below it belong to challenges. Those that the platform has no answer to are the app's, as any other path. */
export const CHALLENGE_PATH = "/.well-known/acme-challenge/";

/** Whether a request may be for a challenge. Cheap: every request is looked at. */
export function isChallenge({ target, method }: { target: string; method: string }): boolean {
  return target.startsWith(CHALLENGE_PATH) && (method === "GET" || method === "HEAD");
}

/** Returns the key of a challenge's answer: the hostname, and what follows the path without a query. */
export function challengeKey(hostname: string, target: string): string {
  const [token = ""] = target.slice(CHALLENGE_PATH.length).split("?");
  return `${hostname.replace(/\.$/, "")}/${token}`;
}

/** Returns the head and the body of the answer to a challenge. */
export function challengeAnswer(text: string, requestId: string): { answer: Answer; body: Buffer } {
  const fields = [
    field("Content-Type", "application/octet-stream"),
    field("Date", new Date().toUTCString()),
    field("Hibernaut-Request-Id", requestId),
  ];
  return ownAnswer(200, fields, Buffer.from(text));
}
