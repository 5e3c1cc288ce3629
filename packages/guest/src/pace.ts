/**
 * How much work one guest may make by what it sends. Every frame costs the platform time that all machines share, and a
 * guest can send a million small ones per second. When it has used up its share, its channel is not read for a
 * moment: the guest's agent then drops output of the app, and lets everything else wait.
 *
 * What the app prints is limited before that, by its log: see machines/logs/allowance.ts. So what waits in the channel is
 * read soon, and answers of the agent arrive in time behind any amount of output.
 */
import { TokenBucket } from "@hibernaut/lib/token-bucket";
import { type Frame, FrameType } from "./frame.ts";

/**
 * Frames per second. Each costs 1 to 5 microseconds on a slow CPU, so this is at most a tenth of it. A copy of files
 * of 300 MB per second stays below: its frames have 16 KB.
 */
const FRAMES_PER_S = 20_000;
/** Frames at once: a fifth of a second of work, which no other machine notices. */
const BURST = 40_000;
/** What the agent says, and bytes that are not frames, cost by their length: this many bytes count as a frame. */
const BYTES_PER_FRAME = 64;
/** Output of the app is cut into lines elsewhere. Here it only costs its checksum. */
const LOG_BYTES_PER_FRAME = 2048;

/** What a guest may send, in frames. */
export const PACE = { perSecond: FRAMES_PER_S, burst: BURST };

/** What this frame counts as. Bytes of a stream cost nothing here: credit holds them back until someone reads them. */
export function costOf({ type, payload }: Pick<Frame, "type" | "payload">): number {
  if (type === FrameType.data || type === FrameType.dataErr) return 1;
  return 1 + Math.floor(payload.length / (type === FrameType.log ? LOG_BYTES_PER_FRAME : BYTES_PER_FRAME));
}

export class ChannelPace {
  readonly #bucket = new TokenBucket(PACE);

  /** Counts what was just handled: its frames, and how many bytes were none. Returns for how many milliseconds to rest. */
  handled(frames: readonly Frame[], noise: number): number {
    const cost = frames.reduce((sum, frame) => sum + costOf(frame), 0);
    this.#bucket.take(cost + Math.ceil(noise / BYTES_PER_FRAME));
    return this.#bucket.waitMs;
  }
}
