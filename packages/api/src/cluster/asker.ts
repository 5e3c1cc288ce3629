/** Who asks, as other hosts are told. */
import type { FastifyRequest } from "fastify";
import type { Asker } from "./headers.ts";
import { clientAddress } from "./peer.ts";

/** Returns who has sent a request. */
export function askerOf(request: FastifyRequest): Asker {
  return {
    sessionToken: request.session === null ? undefined : request.token?.id,
    address: clientAddress(request),
    requestId: request.id,
  };
}
