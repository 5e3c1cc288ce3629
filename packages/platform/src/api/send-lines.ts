/** Sends lines for as long as they come, to readers of any speed. */
import { once } from "node:events";
import type { Writable } from "node:stream";

interface SendLinesOptions {
  /** Ends it, at once. */
  signal: AbortSignal;
  /** An empty line after so long, in milliseconds. */
  heartbeatMs?: number;
  /** A client that reads nothing for this long is disconnected. */
  stallMs?: number;
}

/** So that neither end takes a quiet log for a dead connection: Node's `fetch`, for one, gives up after five minutes. */
const HEARTBEAT_MS = 30_000;
/** Longer than any hiccup of a network. Until then, a stalled reader costs one block of lines. */
const STALL_MS = 30_000;

/**
 * Writes every line as JSON and ends `out`. Asks for the next block only when `out` has room. What stalls or fails is
 * cut: the reply has begun, and that is the only way left to say that it is not whole. Never rejects.
 */
export async function sendLines(
  blocks: AsyncGenerator<unknown[], void>,
  out: Writable,
  { signal, heartbeatMs = HEARTBEAT_MS, stallMs = STALL_MS }: SendLinesOptions,
): Promise<void> {
  const beat = setInterval(() => {
    if (out.writableLength === 0 && !out.writableEnded) out.write("\n");
  }, heartbeatMs);
  try {
    for await (const block of blocks) {
      if (out.destroyed) return;
      const text = block.map((line) => `${JSON.stringify(line)}\n`).join("");
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
