/** Holds what we understood of a stream against what llhttp understood of it. */
import { CHUNK_CLASSES } from "./chunk-classes.ts";
import { type Aspect, DIFFERENCES, inTheirWords, trailerInTheirWords } from "./differences.ts";
import { FIELD_CLASSES } from "./field-classes.ts";
import { LINE_CLASSES } from "./line-classes.ts";
import { KNOWN_METHODS } from "./native-parser.ts";
import { askOracle, type OracleHead, type OracleMessage } from "./oracle.ts";
import { type Reading, readStream, type Stream } from "./reading.ts";
import type { Class, Taken } from "./taken.ts";

/** What became of one message. */
export interface Outcome {
  /** `open`: it is incomplete for at least one of the two, and the other does not contradict. */
  kind: "both accept" | "both refuse" | "only llhttp accepts" | "open";
  /** Names of the classes that explain a refusal, or of the differences that were found. */
  names: readonly string[];
}

/** The two understood a message differently, and no rule says that they may. */
export class Disagreement extends Error {
  override name = "Disagreement";
}

export const CLASSES: readonly Class[] = [...LINE_CLASSES, ...FIELD_CLASSES, ...CHUNK_CLASSES];

/** Reads the stream with both parsers. Throws {@link Disagreement}. */
export function compare(stream: Stream, bytes: Buffer): Outcome[] {
  return readStream(stream, [bytes]).map((reading) => new Comparison(stream, reading, bytes).outcome());
}

class Comparison {
  readonly #stream: Stream;
  readonly #reading: Reading;
  /** The bytes from the message's first one on, to its end if it has one for us. */
  readonly #bytes: Buffer;
  #theirs: OracleMessage;
  readonly #differences: string[] = [];

  constructor(stream: Stream, reading: Reading, bytes: Buffer) {
    this.#stream = stream;
    this.#reading = reading;
    this.#bytes = bytes.subarray(reading.start, reading.end);
    this.#theirs = this.#ask([inTheirWords(this.#bytes, reading)]);
  }

  outcome(): Outcome {
    const { end, refused } = this.#reading;
    if (end !== undefined) return this.#whole();
    this.#sameHead();
    if (refused !== undefined)
      return this.#theirs.refused === undefined ? this.#stricter() : { kind: "both refuse", names: [] };
    return this.#open();
  }

  #whole(): Outcome {
    const message = inTheirWords(this.#bytes, this.#reading);
    const untilClose = this.#reading.response?.framing.kind === "close";
    // The last byte, and none before, must complete the message for llhttp as well; or else the connection's end.
    const pieces = untilClose ? [message] : [message.subarray(0, -1), message.subarray(-1)];
    this.#theirs = this.#ask(pieces, untilClose);
    this.#sameHead();
    if (this.#theirs.refused !== undefined) throw this.#disagreement("only we accept it");
    if (this.#agree("end", true, this.#theirs.endPiece === 1)) {
      this.#same("body", this.#reading.body.toString("latin1"), this.#theirs.body.toString("latin1"));
      const trailers = this.#reading.trailers.map(({ name, value }) => [trailerInTheirWords(name), value]);
      this.#same("trailers", trailers, this.#theirs.trailers);
    }
    const headEnd = (this.#reading.headEnd ?? 0) - this.#reading.start;
    const names = this.#classes(this.#bytes.toString("latin1"), headEnd);
    if (names.length > 0) throw this.#disagreement(`we accept what we say to refuse: ${names.join(", ")}`);
    return { kind: "both accept", names: this.#differences };
  }

  #stricter(): Outcome {
    // Byte by byte llhttp tells where it saw the ends.
    const asked = inTheirWords(this.#bytes, this.#reading);
    this.#theirs = this.#ask(Array.from(asked, (_, at) => asked.subarray(at, at + 1)));
    const { headPiece, endPiece } = this.#theirs;
    const text = asked.toString("latin1", 0, endPiece === -1 ? asked.length : endPiece + 1);
    const names = this.#classes(text, headPiece === -1 ? text.length : headPiece + 1);
    if (names.length === 0) throw this.#disagreement("we refuse without a reason that is listed");
    return { kind: "only llhttp accepts", names };
  }

  /** We want to see more. What llhttp refuses already, we may refuse later. */
  #open(): Outcome {
    const { refused, head, body, endPiece } = this.#theirs;
    const read = this.#reading.body;
    const known = Math.min(body.length, read.length);
    if (!body.subarray(0, known).equals(read.subarray(0, known))) throw this.#disagreement("another body");
    if (refused !== undefined) return { kind: "open", names: [] };
    if (head !== undefined && this.#reading.headEnd === undefined) throw this.#disagreement("only llhttp has the head");
    if (endPiece !== -1) throw this.#disagreement("only llhttp has the whole message");
    return { kind: "open", names: [] };
  }

  #sameHead(): void {
    const { request, response } = this.#reading;
    const ours = request ?? response;
    if (ours === undefined) return;
    const { head } = this.#theirs;
    if (head === undefined) throw this.#disagreement("only we accept its head");
    const fields = ours.fields.map(({ name, value }) => [name, value]);
    this.#same("fields", fields, head.fields);
    this.#agree("keepAlive", ours.keepAlive, head.keepAlive);
    if (request !== undefined) {
      this.#same("version", request.httpVersion, head.version);
      if (KNOWN_METHODS.has(request.method)) this.#same("method", request.method, head.method);
      this.#same("target", request.target, originForm(head.target) ?? head.target);
      if (originForm(head.target) !== undefined)
        this.#same("authority", request.authority, head.target.split(/[/?]/)[2]);
      this.#agree("upgrade", request.upgrade !== undefined, head.upgrade);
    } else if (response !== undefined) {
      this.#same("status", response.status, head.status);
      this.#same("reason", response.reason, head.reason.replace(/^[ \t]+|[ \t]+$/g, ""));
    }
  }

  #same(what: string, ours: unknown, theirs: unknown): void {
    const [one, other] = [JSON.stringify(ours), JSON.stringify(theirs)];
    if (one !== other) throw this.#disagreement(`another ${what}: ${one} for us, ${other} for llhttp`);
  }

  /** Whether both say the same. A listed difference must be there when it applies, and no other may be. */
  #agree(aspect: Aspect, ours: boolean, theirs: boolean): boolean {
    const head = this.#theirs.head as OracleHead;
    const listed = DIFFERENCES.filter((each) => each.aspect === aspect && each.applies(head, this.#stream));
    const expected = listed[0]?.ours ?? theirs;
    if (ours !== expected) throw this.#disagreement(`${aspect}: ${ours} for us, ${theirs} for llhttp`);
    if (ours === theirs) return true;
    this.#differences.push(...listed.map(({ name }) => name));
    return false;
  }

  #classes(text: string, headEnd: number): string[] {
    const [head, rest] = [text.slice(0, headEnd), text.slice(headEnd)];
    const taken: Taken = { side: this.#stream.side, theirs: this.#theirs, head, rest };
    return CLASSES.filter(({ applies }) => applies(taken)).map(({ name }) => name);
  }

  #ask(pieces: readonly Buffer[], ends = false): OracleMessage {
    const bodiless = this.#stream.side === "response" && this.#stream.method === "HEAD";
    return askOracle(this.#stream.side, pieces, { bodiless, ends });
  }

  #disagreement(what: string): Disagreement {
    const bytes = JSON.stringify(this.#bytes.toString("latin1"));
    return new Disagreement(
      `${what}\nbytes:  ${bytes}\nours:   ${shown(this.#reading)}\nllhttp: ${shown(this.#theirs)}`,
    );
  }
}

function shown(value: unknown): string {
  return JSON.stringify(value);
}

/** The path of an http URL; undefined for other targets. */
function originForm(target: string): string | undefined {
  const path = /^https?:\/\/[^/?]*(.*)$/i.exec(target)?.[1];
  return path === undefined || path.startsWith("/") ? path : `/${path}`;
}
