/** Replies that come piece by piece. They end when their client disconnects or the platform shuts down. */
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { background } from "@hibernaut/lib/background";
import type { FastifyReply } from "fastify";
import { clientGone } from "./client-gone.ts";
import type { Api } from "./deps.ts";
import { sendBlocks } from "./send-blocks.ts";

/** The content type of a reply with a line of JSON for each thing. */
export const NDJSON = "application/x-ndjson";
/** The content type of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export const EVENT_STREAM = "text/event-stream";

/** What says that the connection is alive: an empty line, and a comment. */
const HEARTBEATS = { [NDJSON]: "\n", [EVENT_STREAM]: ":\n\n" } as const;

/** The open replies of some routes. */
export class OpenReplies {
  readonly #closing = new AbortController();
  readonly #open = new Set<Promise<unknown>>();

  constructor(app: Api) {
    app.addHook("preClose", async () => {
      this.#closing.abort();
      await Promise.allSettled(this.#open);
      // What was written is sent before the server closes its connections.
      await setImmediate();
    });
  }

  /** Aborts when the platform shuts down. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Returns a signal that aborts when the client disconnects or the platform shuts down. */
  until(reply: FastifyReply): AbortSignal {
    return AbortSignal.any([this.closing, clientGone(reply)]);
  }

  /** Makes the shutdown wait for the end of a reply. */
  hold<T>(replying: Promise<T>): Promise<T> {
    const held = replying.finally(() => this.#open.delete(held));
    this.#open.add(held);
    return held;
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
    background(this.hold(sendBlocks(blocks, out, { signal, heartbeat: HEARTBEATS[type] })), "sending a stream");
    return reply.header("cache-control", "no-store").type(type).send(out);
  }
}

async function* linesOf(blocks: AsyncIterable<unknown[]>): AsyncGenerator<string, void> {
  for await (const block of blocks) yield block.map((line) => `${JSON.stringify(line)}\n`).join("");
}
