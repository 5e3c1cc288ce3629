/** Shows how far a copy has come, on standard error: in place on a terminal, a line every few seconds elsewhere. */
import { Transform } from "node:stream";
import { megabytes } from "../terminal.ts";

/** How often it is shown, in milliseconds: on a terminal, and in a log. */
const DRAW_MS = 100;
const LINE_MS = 5000;

/** Counts what passes and shows it until {@link end}. */
export class CopyProgress {
  readonly counter: Transform;
  readonly #timer: NodeJS.Timeout;
  readonly #stream: NodeJS.WriteStream;
  #bytes = 0;

  constructor(label: string, { json }: { json: boolean }, stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream;
    this.counter = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.#bytes += chunk.length;
        done(null, chunk);
      },
    });
    const started = performance.now();
    const show = () => {
      const rate = this.#bytes / ((performance.now() - started) / 1000 || 1);
      if (json) stream.write(`${JSON.stringify({ step: "copy", done_bytes: this.#bytes })}\n`);
      else if (stream.isTTY) stream.write(`\r\x1b[2K${label}: ${megabytes(this.#bytes)}, ${megabytes(rate)}/s`);
      else stream.write(`${label}: ${megabytes(this.#bytes)}...\n`);
    };
    this.#timer = setInterval(show, stream.isTTY && !json ? DRAW_MS : LINE_MS);
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#stream.isTTY) this.#stream.write("\r\x1b[2K");
  }
}
