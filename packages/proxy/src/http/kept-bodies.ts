/** The bodies of open requests, kept while they are forwarded, in case an app sends its request on. */
import type { Limits } from "./limits.ts";

/**
 * What was kept of one body. Undefined: nothing has arrived. Null: more has arrived than is kept. Most bodies are one
 * piece, for which nothing is allocated.
 */
export type KeptBody = Buffer | Buffer[] | null | undefined;

/** What a piece costs in addition to its bytes. A client that sends single bytes must not cost much more than others. */
const PIECE_COST_BYTES = 256;

/**
 * Keeps the bodies of all open requests of a proxy within one limit. An app may have as much of it as is still free, so
 * that there is always room for one more: a single app gets at most half, and n busy ones leave a part of n + 1. A fixed
 * share would either be too small for an app that is alone, or leave nothing once a few are flooded.
 */
export class KeptBodies {
  readonly #limits: Pick<Limits, "replayBodyBytes" | "replayKeptBytes">;
  #bytes = 0;
  /** What is kept for each app. Only those that have something. */
  readonly #ofApps = new Map<string, number>();

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
   * @param app the app that the request was first sent to
   * @param whole the bytes of the body so far, with this piece
   */
  keep(app: string, before: KeptBody, piece: Buffer, whole: number): KeptBody {
    if (before === null) return null;
    const { replayBodyBytes, replayKeptBytes } = this.#limits;
    const cost = piece.length + PIECE_COST_BYTES;
    const ofApp = this.#ofApps.get(app) ?? 0;
    if (whole > replayBodyBytes || ofApp + cost > replayKeptBytes - this.#bytes - cost) {
      this.release(app, before);
      return null;
    }
    this.#bytes += cost;
    this.#ofApps.set(app, ofApp + cost);
    if (before === undefined) return piece;
    if (!Array.isArray(before)) return [before, piece];
    before.push(piece);
    return before;
  }

  /** Forgets a body that is not needed any more, and was kept for this app. */
  release(app: string, kept: KeptBody): void {
    let cost = 0;
    for (const piece of piecesOf(kept)) cost += piece.length + PIECE_COST_BYTES;
    if (cost === 0) return;
    this.#bytes -= cost;
    const left = (this.#ofApps.get(app) ?? 0) - cost;
    if (left > 0) this.#ofApps.set(app, left);
    else this.#ofApps.delete(app);
  }
}

/** Returns what was kept, in order. */
export function piecesOf(kept: KeptBody): readonly Buffer[] {
  if (kept === undefined || kept === null) return [];
  return Array.isArray(kept) ? kept : [kept];
}
