/** Requests from one host to another one, over the peer port. */
import { request } from "node:https";
import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { type ErrorCode, ERROR_STATUS, HibernautError } from "../domain/errors.ts";
import { messageOf } from "../lib/text.ts";
import type { Peers } from "./cluster.ts";

/** The longest answer that is read: these are a few fields of JSON. Bytes. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** What is sent: JSON, or a stream of bytes. */
export type PeerBody = { json: unknown } | { bytes: AsyncIterable<Buffer> };

/**
 * Calls a route of a host's peer port with POST. Resolves with what it answers as JSON. Rejects with the error that it
 * answers, with `host_unreachable` when it gives no answer, and with the signal's reason.
 */
export type PeerCall = (host: string, path: string, body: PeerBody, signal: AbortSignal) => Promise<unknown>;

/** Returns how to call other hosts. */
export function peerCall(peers: Peers): PeerCall {
  return async (host, path, body, signal) => {
    const { tls, ...at } = peers.target(host, "peer");
    const outgoing = request({ ...tls, ...at, path, method: "POST", agent: false, signal });
    return exchange(outgoing, host, body, signal);
  };
}

/** Sends the body and reads the answer, which may come before all of the body was sent. */
export async function exchange(
  outgoing: ReturnType<typeof request>,
  host: string,
  body: PeerBody,
  signal: AbortSignal,
): Promise<unknown> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once("response", resolve);
    outgoing.once("error", reject);
  });
  answered.catch(() => {}); // the error of what is sent may come first
  const type = "json" in body ? "application/json" : "application/octet-stream";
  outgoing.setHeader("content-type", type);
  try {
    const bytes = "json" in body ? [Buffer.from(JSON.stringify(body.json))] : body.bytes;
    const sent = pipeline(bytes, outgoing);
    sent.catch(() => {}); // an answer that came first says why
    const answer = await Promise.race([answered, sent.then(() => answered)]);
    return await answerOf(answer);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HibernautError) throw error;
    // The stream's own failure, such as a file that cannot be read, is not the other host's.
    const why = messageOf(error);
    throw new HibernautError("host_unreachable", `Host ${host} gave no answer: ${why}. Try again in a moment.`, {
      host,
    });
  } finally {
    outgoing.destroy();
  }
}

async function answerOf(answer: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error("the answer is too long");
    pieces.push(piece);
  }
  const value = JSON.parse(Buffer.concat(pieces).toString("utf8")) as unknown;
  if (answer.statusCode === 200) return value;
  const { error, message, details } = value as { error: string; message: string; details?: Record<string, unknown> };
  const code: ErrorCode = error in ERROR_STATUS ? (error as ErrorCode) : "internal";
  throw new HibernautError(code, message, details);
}
