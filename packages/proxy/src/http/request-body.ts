/** What has arrived of a request's body, and what is kept of it until the app has answered, which may send the request on. */
import type { Field } from "../contract.ts";
import { TooLarge } from "./grammar.ts";
import { type KeptBodies, type KeptBody, piecesOf } from "./kept-bodies.ts";

const NO_TRAILERS: readonly Field[] = [];

export class RequestBody {
  /** How much of it has arrived. */
  bytes = 0;
  /** Whether any part of it was taken from the client, which cannot be asked for it again. */
  taken = false;
  /** Whether all of it has arrived. */
  done: boolean;
  trailers = NO_TRAILERS;
  readonly #bodies: KeptBodies;
  #kept: KeptBody;
  /** The app that it counts for: the first one that the request was sent to. */
  #app = "";

  constructor(bodies: KeptBodies, done: boolean) {
    this.#bodies = bodies;
    this.done = done;
  }

  /** Whether the request could be sent once more, body and all. */
  get whole(): boolean {
    return !this.taken || this.#kept !== null;
  }

  /** What is kept of it, in order. */
  get pieces(): readonly Buffer[] {
    return piecesOf(this.#kept);
  }

  /** Counts a piece. Throws {@link TooLarge} beyond this many bytes. */
  add(piece: Buffer, limit: number): void {
    this.taken = true;
    this.bytes += piece.length;
    if (this.bytes > limit) throw bodyTooLarge(limit);
  }

  /** Keeps the piece that was just counted, if there is room, for this app. */
  keep(piece: Buffer, app: string): void {
    if (this.#kept === undefined) this.#app = app;
    this.#kept = this.#bodies.keep(this.#app, this.#kept, piece, this.bytes);
  }

  /** Nobody needs it again. */
  forget(): void {
    if (this.#kept === undefined) return;
    this.#bodies.release(this.#app, this.#kept);
    this.#kept = undefined;
  }
}

/** The error for a request's body that is larger than the limit. */
export function bodyTooLarge(limit: number): TooLarge {
  return new TooLarge("body", `The body of a request may have up to ${limit} bytes.`);
}
