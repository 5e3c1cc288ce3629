/** JSON messages, one per line, over a stream between two processes of the platform. */
import type { Duplex } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** The longest line. A table of tens of thousands of machines has a few MB; anything longer is not a message. */
const MAX_LINE = 64 * 1024 * 1024;
/** A peer that lets this much pile up is disconnected. It connects again, and is told everything from the beginning. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

/**
 * Calls `onMessage` for every message that arrives, and returns a function that sends one. Both ends are of the same
 * version, so the form of messages is not checked. A peer that sends something other than JSON is disconnected.
 */
export function exchangeLines(stream: Duplex, onMessage: (message: never) => void): (message: object) => void {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  stream.on("data", (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE) stream.destroy(new Error("a message without an end"));
    for (const line of lines) {
      const message = parse(line);
      if (message === undefined) stream.destroy(new Error("a message that is not JSON"));
      else if (!stream.destroyed) onMessage(message as never);
    }
  });
  return (message) => {
    if (!stream.writable) return;
    if (stream.writableLength > MAX_UNSENT_BYTES) stream.destroy(new Error("the peer does not read"));
    else stream.write(`${JSON.stringify(message)}\n`);
  };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
