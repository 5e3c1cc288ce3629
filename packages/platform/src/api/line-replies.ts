/** Replies that are streams of lines of JSON. They end when their client disconnects or the platform shuts down. */
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { Api } from "./deps.ts";
import { sendLines } from "./send-lines.ts";

/** The content type of such a reply. */
export const NDJSON = "application/x-ndjson";

/** The open replies of some routes. */
export class LineReplies {
  readonly #closing = new AbortController();
  readonly #open = new Set<Promise<void>>();

  constructor(app: Api) {
    app.addHook("preClose", async () => {
      this.#closing.abort();
      await Promise.all(this.#open);
      // What was written is sent before the server closes its connections.
      await setImmediate();
    });
  }

  /** Aborts when the platform shuts down. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Sends every line as it comes. Returns the reply. */
  send(reply: FastifyReply, blocks: AsyncGenerator<unknown[], void>, signal: AbortSignal): FastifyReply {
    const out = new PassThrough();
    const sending = sendLines(blocks, out, { signal }).finally(() => this.#open.delete(sending));
    this.#open.add(sending);
    return reply.header("cache-control", "no-store").type(NDJSON).send(out);
  }
}
