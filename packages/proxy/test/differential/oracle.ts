/** Asks llhttp, the parser of Node's own server and client, for a second opinion. It has no lenient flags set. */
import { BODY, type HeadValues, HTTPParser, METHODS, NO_BODY, start } from "./native-parser.ts";

/** A field's name as it was spelt, and its value. */
export type Pair = readonly [name: string, value: string];
export type Side = "request" | "response";

/** A head as llhttp understood it. */
export interface OracleHead {
  version: string;
  /** Empty in a response, as is the target. */
  method: string;
  target: string;
  status: number;
  reason: string;
  fields: Pair[];
  keepAlive: boolean;
  /** Whether the message asks to switch the connection to another protocol, or switches it. */
  upgrade: boolean;
}

/** The first message of a stream. */
export interface OracleMessage {
  head: OracleHead | undefined;
  body: Buffer;
  trailers: Pair[];
  /** Which piece completed the head, and which the message: -1 when none did, their number when the end did. */
  headPiece: number;
  endPiece: number;
  /** llhttp's code and reason, when it refused before the message was whole. */
  refused: string | undefined;
}

export interface OracleOptions {
  /** It is the response to HEAD. */
  bodiless?: boolean;
  /** The connection ends behind the last piece. */
  ends?: boolean;
}

/** No bytes, but with an address: without one it would be the end of the stream. */
const NOTHING = Buffer.alloc(8).subarray(0, 0);

class Oracle {
  readonly #parser = new HTTPParser();
  #message = nothing();
  #pairs: string[] = [];
  #target = "";
  #piece = 0;
  #answer = BODY;

  constructor() {
    const parser = this.#parser;
    // Heads of many fields come in portions, the last of them here too; trailers come this way only.
    parser[HTTPParser.kOnHeaders] = (pairs: string[], target: string) => {
      this.#pairs.push(...pairs);
      this.#target += target;
    };
    parser[HTTPParser.kOnHeadersComplete] = (...values: HeadValues) => this.#onHead(values);
    parser[HTTPParser.kOnBody] = (piece: Buffer) => {
      const message = this.#message;
      if (message.endPiece === -1) message.body = Buffer.concat([message.body, piece]);
    };
    parser[HTTPParser.kOnMessageComplete] = () => {
      const message = this.#message;
      if (message.endPiece !== -1) return;
      message.trailers = inPairs(this.#pairs);
      message.endPiece = this.#piece;
    };
  }

  /** Reads the first message; the callbacks ignore what llhttp finds behind it in the same piece. */
  read(side: Side, pieces: readonly Buffer[], { bodiless = false, ends = false }: OracleOptions = {}): OracleMessage {
    const message = nothing();
    this.#message = message;
    this.#pairs = [];
    this.#target = "";
    this.#answer = bodiless ? NO_BODY : BODY;
    start(this.#parser, side === "request" ? HTTPParser.REQUEST : HTTPParser.RESPONSE);
    for (const [index, piece] of pieces.entries()) {
      this.#piece = index;
      const result = this.#parser.execute(piece);
      if (message.endPiece !== -1) return message;
      if (result instanceof Error) return { ...message, refused: told(result) };
      if (message.head?.upgrade === true && this.#hidesError(result, piece))
        return { ...message, refused: "an error that Node does not tell" };
    }
    if (!ends) return message;
    this.#piece = pieces.length;
    const result = this.#parser.finish();
    return result instanceof Error ? { ...message, refused: told(result) } : message;
  }

  /**
   * Once a message asks for an upgrade, Node takes every error for the place where the other protocol begins. What
   * it returns then is that place; when it is the very end, an error shows as more or less than nothing read of nothing.
   */
  #hidesError(result: unknown, piece: Buffer): boolean {
    return result !== piece.length || this.#parser.execute(NOTHING) !== 0;
  }

  #onHead([major, minor, pairs, method, target, status, reason, upgrade, keepAlive]: HeadValues): number {
    const message = this.#message;
    if (message.head !== undefined) return this.#answer;
    message.headPiece = this.#piece;
    message.head = {
      version: `${major}.${minor}`,
      method: METHODS.get(method ?? -1) ?? "",
      target: target ?? this.#target,
      status: status ?? 0,
      reason: reason ?? "",
      fields: inPairs(pairs ?? this.#pairs),
      keepAlive,
      upgrade,
    };
    this.#pairs = [];
    return this.#answer;
  }
}

function nothing(): OracleMessage {
  return { head: undefined, body: Buffer.alloc(0), trailers: [], headPiece: -1, endPiece: -1, refused: undefined };
}

function inPairs(flat: readonly string[]): Pair[] {
  return Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] ?? "", flat[2 * at + 1] ?? ""] as const);
}

function told(error: Error & { code?: string; reason?: string }): string {
  return `${error.code}: ${error.reason}`;
}

const ORACLE = new Oracle();

/** Gives the pieces of a stream to llhttp until its first message is whole or refused, or there are no more. */
export function askOracle(side: Side, pieces: readonly Buffer[], options: OracleOptions = {}): OracleMessage {
  return ORACLE.read(side, pieces, options);
}
