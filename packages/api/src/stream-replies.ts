/** Replies that come piece by piece. They end when their client disconnects or the platform shuts down. */
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { Api } from "./deps.ts";
import { sendBlocks } from "./send-blocks.ts";

/** The content type of a reply with a line of JSON for each thing. */
export const NDJSON = "application/x-ndjson";
/** The content type of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export const EVENT_STREAM = "text/event-stream";

/** What says that the connection is alive: an empty line, and a comment. */
const HEARTBEATS = { [NDJSON]: "\n", [EVENT_STREAM]: ":\n\n" } as const;

/** The open replies of some routes. */
export class StreamReplies {
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

  /** Sends everything as JSON, a line for each, as it comes. Returns the reply. */
  send(reply: FastifyReply, blocks: AsyncGenerator<unknown[], void>, signal: AbortSignal): FastifyReply {
    return this.sendText(reply, linesOf(blocks), { type: NDJSON, signal });
  }

  /** Sends text as it comes. Returns the reply. */
  sendText(
    reply: FastifyReply,
    blocks: AsyncIterable<string>,
    { type, signal }: { type: keyof typeof HEARTBEATS; signal: AbortSignal },
  ): FastifyReply {
    const out = new PassThrough();
    const heartbeat = HEARTBEATS[type];
    const sending = sendBlocks(blocks, out, { signal, heartbeat }).finally(() => this.#open.delete(sending));
    this.#open.add(sending);
    return reply.header("cache-control", "no-store").type(type).send(out);
  }
}

async function* linesOf(blocks: AsyncIterable<unknown[]>): AsyncGenerator<string, void> {
  for await (const block of blocks) yield block.map((line) => `${JSON.stringify(line)}\n`).join("");
}
