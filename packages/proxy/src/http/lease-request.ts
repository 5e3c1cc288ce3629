/** What a request says to the part of the proxy that finds machines. */
import type { RequestTrace } from "@hibernaut/telemetry";
import type { Destination, RequestHead } from "../contract.ts";
import type { Peer } from "./admission.ts";
import type { Origin } from "./heads.ts";
import type { RequestMessage } from "./request.ts";

const NONE_TRIED: readonly string[] = [];

/** Returns the head of a request that was admitted; `to` if the proxy of another host has decided where it goes. */
export function leaseRequest(
  { method, target, host, httpVersion, fields }: RequestMessage,
  { clientAddress, secure, requestId }: Origin,
  { connection }: Peer,
  trace: RequestTrace | undefined,
  to: Destination | undefined,
): RequestHead {
  const tried = NONE_TRIED;
  return {
    method,
    target,
    host,
    httpVersion,
    fields,
    clientAddress,
    secure,
    requestId,
    connection,
    tried,
    since: undefined,
    to,
    trace,
  };
}
