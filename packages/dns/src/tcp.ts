/** DNS over a stream: each message is preceded by its length in two bytes. */

/** Prepends the length to a message. */
export function tcpMessage(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** Splits a stream into messages. Keeps no more than one incomplete message, 64 KiB. */
export class TcpMessages {
  #rest = Buffer.alloc(0);

  /** Adds a chunk, and returns the messages that are complete now. */
  push(chunk: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const found: Buffer[] = [];
    while (this.#rest.length >= 2) {
      const end = 2 + this.#rest.readUInt16BE(0);
      if (this.#rest.length < end) break;
      found.push(this.#rest.subarray(2, end));
      this.#rest = this.#rest.subarray(end);
    }
    return found;
  }
}
