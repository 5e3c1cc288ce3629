/** The bodies of open requests, kept while they are forwarded, in case an app sends its request on. */
import type { Limits } from "./limits.ts";

/**
 * What was kept of one body. Undefined: nothing has arrived. Null: more has arrived than is kept. Most bodies are one
 * piece, for which nothing is allocated.
 */
export type KeptBody = Buffer | Buffer[] | null | undefined;

/** What a piece costs in addition to its bytes. A client that sends single bytes must not cost much more than others. */
const PIECE_BYTES = 256;

/** Keeps the bodies of all open requests of a proxy within one limit. */
export class KeptBodies {
  readonly #limits: Pick<Limits, "replayBodyBytes" | "replayKeptBytes">;
  #bytes = 0;

  constructor(limits: Pick<Limits, "replayBodyBytes" | "replayKeptBytes">) {
    this.#limits = limits;
  }

  /** What is kept now, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Keeps another piece of a body, unless it becomes too large. Returns what is kept of it now.
   *
   * @param whole the bytes of the body so far, with this piece
   */
  keep(before: KeptBody, piece: Buffer, whole: number): KeptBody {
    if (before === null) return null;
    const { replayBodyBytes, replayKeptBytes } = this.#limits;
    const cost = piece.length + PIECE_BYTES;
    if (whole > replayBodyBytes || this.#bytes + cost > replayKeptBytes) {
      this.release(before);
      return null;
    }
    this.#bytes += cost;
    if (before === undefined) return piece;
    if (!Array.isArray(before)) return [before, piece];
    before.push(piece);
    return before;
  }

  /** Forgets a body that is not needed any more. */
  release(kept: KeptBody): void {
    for (const piece of piecesOf(kept)) this.#bytes -= piece.length + PIECE_BYTES;
  }
}

/** Returns what was kept, in order. */
export function piecesOf(kept: KeptBody): readonly Buffer[] {
  if (kept === undefined || kept === null) return [];
  return Array.isArray(kept) ? kept : [kept];
}
