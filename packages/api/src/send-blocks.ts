/** Sends blocks of text for as long as they come, to readers of any speed. */
import { once } from "node:events";
import type { Writable } from "node:stream";

interface SendOptions {
  /** Ends it, at once. */
  signal: AbortSignal;
  /** What says that the connection is alive, which readers ignore. */
  heartbeat: string;
  /** Milliseconds between two of them. */
  heartbeatMs?: number;
  /** A client that reads nothing for this long is disconnected. */
  stallMs?: number;
}

/** So that nobody takes a quiet reply for a dead connection: Node's `fetch` gives up after five minutes, proxies after one. */
const HEARTBEAT_MS = 15_000;
/** Longer than any hiccup of a network. Until then, a stalled reader costs one block of lines. */
const STALL_MS = 30_000;

/**
 * Writes every block and ends `out`. Asks for the next one only when `out` has room. What stalls or fails is cut: the
 * reply has begun, and that is the only way left to say that it is not whole. Never rejects.
 */
export async function sendBlocks(
  blocks: AsyncIterable<string>,
  out: Writable,
  { signal, heartbeat, heartbeatMs = HEARTBEAT_MS, stallMs = STALL_MS }: SendOptions,
): Promise<void> {
  const beat = setInterval(() => {
    if (out.writableLength === 0 && !out.writableEnded) out.write(heartbeat);
  }, heartbeatMs);
  try {
    for await (const text of blocks) {
      if (out.destroyed) return;
      if (text === "" || out.write(text)) continue;
      await once(out, "drain", { signal: AbortSignal.any([signal, AbortSignal.timeout(stallMs)]) });
    }
    out.end();
  } catch (error) {
    out.destroy(error as Error);
  } finally {
    clearInterval(beat);
  }
}
