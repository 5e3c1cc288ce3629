/** Which headers pass between a client, the host it talks to, and the host that answers. Pure. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { FastifyRequest } from "fastify";
import { WITHIN_HEADER } from "../within.ts";
import { CLIENT_HEADER, clientAddress, TOKEN_HEADER } from "./peer.ts";

/** The host that answered. */
export const HOST_HEADER = "hibernaut-host";
/** The hosts that could not be asked, and whose part is missing. */
export const MISSING_HEADER = "hibernaut-hosts-missing";

/** They concern one connection (RFC 9110, section 7.6.1), the first host alone, or the body, which may not go along. */
const NOT_SENT_ON = new Set([
  "content-length",
  "content-type",
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
  "cookie",
  "origin",
  WITHIN_HEADER,
]);
/** What the host that the client talks to says by itself. */
const OWN = /^(access-control-.*|vary|set-cookie|x-request-id|connection|keep-alive|transfer-encoding|date)$/;

/** Returns the headers of a client's request as another host gets them, without those of its body. */
export function sentOn(request: FastifyRequest): IncomingHttpHeaders {
  // A client that has shown a token shows it to the other host, too. For a session, this host vouches.
  const sessionToken = request.session === null ? undefined : request.token?.id;
  const kept = Object.entries(request.headers).filter(
    ([name]) => !NOT_SENT_ON.has(name) && !name.startsWith("hibernaut-peer-"),
  );
  return {
    ...Object.fromEntries(kept),
    "x-request-id": request.id,
    [CLIENT_HEADER]: clientAddress(request),
    ...(sessionToken !== undefined && { [TOKEN_HEADER]: sessionToken }),
  };
}

/** Returns the headers of another host's reply as the client gets them. */
export function replied(headers: IncomingHttpHeaders, host: string): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !OWN.test(name));
  return { ...Object.fromEntries(kept), [HOST_HEADER]: host };
}
