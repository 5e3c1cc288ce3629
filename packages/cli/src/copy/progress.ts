/** Shows how far a copy has come, on standard error: in place on a terminal, a line every few seconds elsewhere. */
import { Transform } from "node:stream";
import { clearLine, megabytes, redraw } from "../terminal.ts";

/** How often it is shown, in milliseconds: on a terminal, and in a log. */
const DRAW_MS = 100;
const LINE_MS = 5000;

/** Counts what passes and shows it until {@link end}. */
export class CopyProgress {
  readonly counter: Transform;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;

  constructor(label: string, { json }: { json: boolean }) {
    const { stderr } = process;
    this.counter = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.#bytes += chunk.length;
        done(null, chunk);
      },
    });
    const started = performance.now();
    const show = () => {
      const rate = this.#bytes / ((performance.now() - started) / 1000 || 1);
      if (json) stderr.write(`${JSON.stringify({ step: "copy", done_bytes: this.#bytes })}\n`);
      else if (stderr.isTTY) redraw(`${label}: ${megabytes(this.#bytes)}, ${megabytes(rate)}/s`, stderr);
      else stderr.write(`${label}: ${megabytes(this.#bytes)}...\n`);
    };
    this.#timer = setInterval(show, stderr.isTTY && !json ? DRAW_MS : LINE_MS);
  }

  end(): void {
    clearInterval(this.#timer);
    if (process.stderr.isTTY) clearLine(process.stderr);
  }
}
