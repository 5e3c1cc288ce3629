/** The response to what never became an exchange. */
import { unservedEntry } from "../contract.ts";
import { originOf, type Peer } from "./admission.ts";
import type { Engine } from "./engine.ts";
import type { Answer } from "./heads.ts";
import { refusalAnswer, toProxyRefusal } from "./refusals.ts";

/** Logs a request whose head was refused. Nothing in the head can be believed, so the log contains nothing of it. */
export function refuseEarly(engine: Engine, peer: Peer, error: unknown): { answer: Answer; body: Buffer } {
  const { requestId, clientAddress } = originOf([], peer, engine.trust);
  const refusal = toProxyRefusal(error);
  const { status, code } = refusal;
  const response = refusalAnswer(refusal, requestId);
  engine.onAccess(unservedEntry({ requestId, clientAddress, status, bytesOut: response.body.length, error: code }));
  return response;
}
