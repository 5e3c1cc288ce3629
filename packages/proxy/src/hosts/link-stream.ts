/**
 * A TCP connection between a client and a machine, on its way between two hosts. TLS does not say whether a stream has
 * ended or was broken off, and databases must know: so bytes travel in frames, and an empty frame is the end.
 */
import { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

/** The length of a frame's bytes comes first, in this many bytes. */
const LENGTH_BYTES = 4;
const END = Buffer.alloc(LENGTH_BYTES);

/** One direction may end before the other. What is broken off at one end is broken off at the other. */
export class LinkStream extends Duplex {
  readonly #socket: TLSSocket;
  /** The beginning of a length, of which the rest has not come yet. */
  #begun: Buffer = Buffer.alloc(0);
  /** How many bytes of the current frame have not come yet. */
  #left = 0;
  #ended = false;

  constructor(socket: TLSSocket) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    socket.on("data", (piece: Buffer) => this.#take(piece));
    const gone = () => {
      if (!this.#ended || !this.writableFinished) this.destroy();
    };
    socket.on("end", () => {
      if (!this.#ended) this.destroy();
    });
    socket.on("close", gone);
    socket.on("error", () => {}); // "close" follows
    socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const length = Buffer.allocUnsafe(LENGTH_BYTES);
    length.writeUInt32BE(piece.length);
    this.#socket.cork();
    this.#socket.write(length);
    const more = this.#socket.write(piece);
    this.#socket.uncork();
    if (more) done();
    else this.#socket.once("drain", done);
  }

  override _final(done: () => void): void {
    // The socket stays open for the other direction.
    this.#socket.write(END, () => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#ended && this.writableFinished) this.#socket.end();
    else this.#socket.destroy();
    done(error);
  }

  /** As sockets do it: there is nothing to reset, because the missing end says it all. */
  resetAndDestroy(): void {
    this.destroy();
  }

  setTimeout(ms: number, callback: () => void): this {
    this.#socket.setTimeout(ms, callback);
    return this;
  }

  setKeepAlive(on: boolean, ms: number): this {
    this.#socket.setKeepAlive(on, ms);
    return this;
  }

  #take(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.#ended; ) {
      if (this.#left === 0) {
        const length = Buffer.concat([this.#begun, piece.subarray(at, at + LENGTH_BYTES - this.#begun.length)]);
        at += length.length - this.#begun.length;
        this.#begun = length;
        if (length.length < LENGTH_BYTES) return;
        this.#begun = Buffer.alloc(0);
        this.#left = length.readUInt32BE();
        if (this.#left === 0) {
          this.#ended = true;
          this.push(null);
        }
      } else {
        const part = piece.subarray(at, at + this.#left);
        at += part.length;
        this.#left -= part.length;
        if (!this.push(part)) this.#socket.pause();
      }
    }
  }
}
