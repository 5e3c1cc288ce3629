/**
 * Reads what machines send into buffers that are used again. Node allocates a new buffer for every piece otherwise, which
 * costs as much as moving it.
 */
import type { OnReadOpts } from "node:net";

/** A buffer stays with its connection while that is idle: small, until a piece fills it. */
const SMALL_BYTES = 4 * 1024;
const LARGE_BYTES = 64 * 1024;
/** After this many small pieces in a row, a small buffer will do. A large answer ends with a small piece. */
const SMALL_PIECES = 8;

/** Gets a piece. Returns whether it wants more, and whether it is done with the bytes. */
type Give = (piece: Buffer) => { more: boolean; done: boolean };

/** Takes what a machine sends. For the option `onread` of one socket at a time. */
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

  /** Gives all further pieces to `give`, and before them those that have come when nobody took them. */
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
