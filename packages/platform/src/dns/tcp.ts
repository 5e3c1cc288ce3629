/** DNS over a stream: every message goes behind its length in two bytes. */

export function tcpMessage(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** Takes a stream apart again. Never keeps more than one message, 64 KiB. */
export class TcpMessages {
  #rest = Buffer.alloc(0);

  /** The messages that are whole now. */
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
