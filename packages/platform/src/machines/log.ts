/** The app's output, kept in one file of bounded size per machine. */
import { createWriteStream, renameSync, statSync, type WriteStream } from "node:fs";

/** Two files of this size at most: the current one and the one before. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Waiting to be written; beyond it output is dropped, so that a slow disk never fills our memory. */
const MAX_PENDING_BYTES = 1024 * 1024;

export class AppLog {
  readonly #path: string;
  #stream: WriteStream | undefined;
  #size = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** False when the output was dropped. */
  write(data: Buffer): boolean {
    const stream = this.#open();
    if (stream.writableLength + data.length > MAX_PENDING_BYTES) return false;
    stream.write(data);
    this.#size += data.length;
    if (this.#size >= MAX_BYTES) this.#rotate();
    return true;
  }

  close(): void {
    this.#stream?.end();
    this.#stream = undefined;
  }

  #open(): WriteStream {
    if (this.#stream !== undefined) return this.#stream;
    this.#size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    this.#stream = createWriteStream(this.#path, { flags: "a", mode: 0o600 });
    // A log that cannot be written must not end the platform; the app goes on without it.
    this.#stream.on("error", () => {});
    return this.#stream;
  }

  #rotate(): void {
    this.close();
    try {
      renameSync(this.#path, `${this.#path}.1`);
    } catch {
      // the folder went away with its machine
    }
  }
}
