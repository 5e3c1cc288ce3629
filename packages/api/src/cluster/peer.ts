/** Requests that another host of the cluster has sent on: who sent them, and for whom. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { TokenRecord, TokenStore } from "@hibernaut/store";
import type { FastifyRequest } from "fastify";
import { isLive } from "../tokens.ts";

/** Connections from other hosts, each with the host's name. Only the peer port puts any in here. */
export type PeerConnections = WeakMap<object, string>;

/** The id of the token of a client that has shown a session to the first host. */
export const TOKEN_HEADER = "hibernaut-peer-token";
/** The client's address. */
export const CLIENT_HEADER = "hibernaut-peer-client";

declare module "fastify" {
  interface FastifyRequest {
    /** The host that has sent this request on; null for requests of clients. */
    peer: string | null;
    /** The host that this request was sent on to; null for requests that are answered here. */
    sentOnTo: string | null;
  }
}

/** Returns the token that a host of the cluster vouches for. Undefined when it passes on what the client has shown. */
export function vouchedToken(request: FastifyRequest, tokens: TokenStore): TokenRecord | undefined {
  const id = request.headers[TOKEN_HEADER];
  if (request.peer === null || typeof id !== "string") return undefined;
  const token = tokens.get(id);
  if (token !== undefined && isLive(token)) return token;
  const message = `The token ${id} of the session is not valid on this host. Sign in again.`;
  throw new HibernautError("unauthenticated", message, { token_id: id });
}

/** Returns the address of the client, also of one that talks to another host. */
export function clientAddress(request: FastifyRequest): string {
  const told = request.headers[CLIENT_HEADER];
  if (request.peer !== null && typeof told === "string") return told;
  return request.socket.remoteAddress ?? "unknown";
}
