/** Calls of routes that hosts have for each other alone, at the peer port. */
import { Readable } from "node:stream";
import { isHibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import { answerOf } from "./peer-body.ts";
import { hostSilent, type PeerClient } from "./peer-client.ts";

/** The longest answer that is read: these are a few fields of JSON. Bytes. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** What is sent: JSON, or a stream of bytes. */
type PeerBody = { json: unknown } | { bytes: AsyncIterable<Buffer> };

/**
 * Calls a route of a host's peer port with POST. Resolves with what it answers as JSON, which may come before all of the
 * body was sent. Rejects with the error that it answers, with `host_unreachable` when it gives no answer, and with the
 * signal's reason.
 */
export type PeerCall = (host: string, path: string, body: PeerBody, signal: AbortSignal) => Promise<unknown>;

export function peerCall(client: Pick<PeerClient, "send">): PeerCall {
  return async (host, path, content, signal) => {
    const isJson = "json" in content;
    const headers = { "content-type": isJson ? "application/json" : "application/octet-stream" };
    const body = isJson
      ? Buffer.from(JSON.stringify(content.json))
      : Readable.from(content.bytes, { objectMode: false });
    try {
      const answer = await client.send(host, { method: "POST", path, headers, body, signal });
      return await answerOf(answer, MAX_ANSWER_BYTES, () => new Error("the answer is too long"));
    } catch (error) {
      signal.throwIfAborted();
      throw isHibernautError(error) ? error : hostSilent(host, messageOf(error), error);
    } finally {
      if (!Buffer.isBuffer(body)) body.destroy();
    }
  };
}
