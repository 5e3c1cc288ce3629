/** Whether anybody still waits for a reply. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { FastifyReply } from "fastify";
import { clientWithin } from "./within.ts";

/**
 * Aborts when the client disconnects before its reply was sent, and at no other time. Fastify's own `request.signal`
 * does not say that: it aborts as soon as a request's body has been read.
 */
export function clientGone({ raw, request }: Pick<FastifyReply, "raw" | "request">): AbortSignal {
  const gone = new AbortController();
  const check = () => {
    if (!raw.writableFinished) gone.abort(new HibernautError("aborted", "The client went away."));
  };
  if (raw.destroyed) check();
  else raw.once("close", check);
  const within = clientWithin(request);
  const leave = () => gone.abort(new HibernautError("aborted", "The client went away."));
  if (within?.aborted) leave();
  else within?.addEventListener("abort", leave, { once: true });
  return gone.signal;
}
