/** What tools answer: text, cut where there is too much of it. Pure. */

/** The form in which a tool answers. */
export interface Answer {
  [key: string]: unknown;
  content: { type: "text"; text: string }[];
  isError?: true;
}

/** Returns an answer. */
export function answer(text: string): Answer {
  return { content: [{ type: "text", text }] };
}

/**
 * Returns a text of at most `most` bytes, without what is in the middle: commands say at their end what went wrong. A note says
 * how much is missing, and comes on top.
 */
export function withoutMiddle(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  const head = startOf(bytes, most - Math.floor(most / 2));
  const tail = endOf(bytes, Math.floor(most / 2));
  const missing = bytes.length - Buffer.byteLength(head) - Buffer.byteLength(tail);
  return `${head}\n[... ${missing} bytes were cut here. Write output to a file and read parts of it, to see all ...]\n${tail}`;
}

/** Lines up to `most`, and a note about those that are missing. `next` says how to see them. */
export function withoutEnd(lines: readonly string[], most: number, next: string): string {
  let room = most;
  const shown: string[] = [];
  for (const line of lines) {
    room -= Buffer.byteLength(line) + 1;
    if (room < 0) break;
    shown.push(line);
  }
  if (shown.length === lines.length) return shown.join("\n");
  return [...shown, `[... ${lines.length - shown.length} more were cut here. ${next} ...]`].join("\n");
}

/** The first bytes of a text in UTF-8, without half a character. */
export function startOf(bytes: Buffer, most: number): string {
  let end = Math.min(most, bytes.length);
  while (end > 0 && end < bytes.length && isInside(bytes[end])) end -= 1;
  return bytes.toString("utf8", 0, end);
}

function endOf(bytes: Buffer, most: number): string {
  let begin = bytes.length - most;
  while (begin < bytes.length && isInside(bytes[begin])) begin += 1;
  return bytes.toString("utf8", begin);
}

/** Whether a byte continues a character. */
function isInside(byte = 0): boolean {
  return (byte & 0xc0) === 0x80;
}
