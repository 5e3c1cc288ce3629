/** Writes responses to an HTTP/1 client, each with a framing of its own, whatever the app's is (RFC 9112 6). */
import type { Field } from "../contract.ts";
import { lastChunk, pushChunk } from "./chunked.ts";
import { type Answer, responseHead } from "./heads.ts";
import type { Outbox } from "./outbox.ts";

export class Reply {
  readonly #outbox: Outbox;
  #chunked = false;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  /** Writes an interim response. HTTP/1.0 has none (RFC 9110 15.2). */
  interim(answer: Answer, httpVersion: string): boolean {
    return httpVersion === "1.0" || this.#outbox.push(responseHead(answer, ""));
  }

  /**
   * Writes the head. Returns whether the connection must be closed after the response: because it was meant to be, or
   * because nothing else can end a body of unknown length for an HTTP/1.0 client.
   */
  head(answer: Answer, httpVersion: string, closing: boolean): boolean {
    const { framing, length } = answer;
    const unknownLength = framing.kind === "chunked" || framing.kind === "close";
    this.#chunked = unknownLength && httpVersion !== "1.0";
    const close = closing || (unknownLength && !this.#chunked);
    let extra = "";
    if (this.#chunked) extra = "Transfer-Encoding: chunked\r\n";
    else if (!unknownLength && length !== undefined) extra = `Content-Length: ${length}\r\n`;
    if (answer.upgrade !== undefined) extra += `Connection: Upgrade\r\nUpgrade: ${answer.upgrade}\r\n`;
    if (close) extra += "Connection: close\r\n";
    else if (httpVersion === "1.0") extra += "Connection: keep-alive\r\n";
    this.#outbox.push(responseHead(answer, extra));
    return close;
  }

  /** Writes a 101, after which the connection belongs to the tunnel. */
  switching(answer: Answer, protocol: string): void {
    this.#outbox.push(responseHead(answer, `Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`));
  }

  data(piece: Buffer): boolean {
    return this.#chunked ? pushChunk(this.#outbox, piece) : this.#outbox.push(piece);
  }

  end(trailers: readonly Field[], whenSent: () => void): void {
    if (this.#chunked) this.#outbox.push(lastChunk(trailers));
    this.#outbox.whenSent(whenSent);
  }
}
