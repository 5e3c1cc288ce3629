/** Moves bytes between a client and a machine. Pipes get a new buffer for every piece, which costs as much as moving it. */
import type { OnReadOpts } from "node:net";
import type { Move } from "../http/tunnel.ts";

/** How many bytes wait for a slow reader before its writer is paused. Less than a large piece, and every piece pauses it. */
export const HIGH_WATER_BYTES = 256 * 1024;
/** A buffer stays with its connection while that is idle: small, until a piece fills it. */
const SMALL_BYTES = 4 * 1024;
const LARGE_BYTES = 64 * 1024;
/** After this many small pieces in a row, a small buffer will do. A large answer ends with a small piece. */
const SMALL_PIECES = 8;

/** Gets a piece. Returns whether it wants more, and whether it is done with the bytes. */
type Give = (piece: Buffer) => { more: boolean; done: boolean };

/** Takes what a machine sends, in a buffer that is used again. For the option `onread` of one socket at a time. */
export class Intake {
  #buffer = Buffer.allocUnsafeSlow(SMALL_BYTES);
  /** How many pieces in a row were small. */
  #small = 0;
  /** What came before there was a reader. */
  readonly #early: Buffer[] = [];
  #give: Give | undefined;

  readonly onread: OnReadOpts = {
    buffer: () => this.#buffer,
    callback: (bytes) => this.#take(bytes),
  };

  /** Gives all pieces to `give`, first those that have come already. */
  start(give: Give): void {
    this.#give = give;
    for (const piece of this.#early.splice(0)) give(piece);
  }

  #take(bytes: number): boolean {
    const buffer = this.#buffer;
    const piece = buffer.subarray(0, bytes);
    if (this.#give === undefined) {
      this.#early.push(Buffer.from(piece));
      return false;
    }
    const { more, done } = this.#give(piece);
    this.#small = bytes < SMALL_BYTES ? this.#small + 1 : 0;
    const size = bytes === buffer.length ? LARGE_BYTES : this.#small > SMALL_PIECES ? SMALL_BYTES : buffer.length;
    if (!done || size !== buffer.length) this.#buffer = Buffer.allocUnsafeSlow(size);
    return more;
  }
}

/** Moves bytes as {@link openTunnel} does by itself. The machine's come from the intake that its socket was opened with. */
export function splice(intake: Intake): Move {
  return (client, upstream, { fromClient, fromUpstream }) => {
    client.on("data", (piece) => {
      fromClient(piece.length);
      if (!upstream.write(piece)) client.pause();
    });
    upstream.on("drain", () => client.resume());
    client.once("end", () => upstream.end());
    intake.start((piece) => {
      fromUpstream(piece.length);
      const more = client.write(piece);
      // Without anything left to write, the kernel or TLS has a copy.
      return { more, done: client.writableLength === 0 };
    });
    client.on("drain", () => upstream.resume());
    upstream.once("end", () => client.end());
    client.resume();
    upstream.resume();
  };
}
