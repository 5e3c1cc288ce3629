/** Reads HTTP/1.1 messages for the tests: strict, simple, and none of the engine's code, so that both can be wrong apart. */

/** A message as far as it has come. */
export interface Message {
  /** The request or status line. */
  line: string;
  /** Names in lower case. */
  fields: [string, string][];
  /** Without its framing. */
  body: string;
  trailers: [string, string][];
  /** "broken" when its framing cannot be understood. */
  state: "partial" | "whole" | "broken";
  /** Index behind its last byte. */
  end: number;
}

/** The request that begins at `from`; undefined while its head has not come. */
export function readRequest(text: string, from: number): Message | undefined {
  const message = readHead(text, from);
  if (message === undefined) return undefined;
  return readBody(message, text, { bodiless: false, untilClose: false, ended: false });
}

/**
 * All responses in the text, up to a 101.
 *
 * @param methods of the requests, in order; GET when there are more responses
 * @param ended whether nothing more will come
 */
export function readResponses(text: string, methods: readonly string[], ended: boolean): Message[] {
  const messages: Message[] = [];
  let finals = 0;
  for (let at = 0; at < text.length; ) {
    const message = readHead(text, at);
    if (message === undefined) return messages;
    const status = statusOf(message);
    const bodiless = methods[finals] === "HEAD" || status < 200 || status === 204 || status === 304;
    messages.push(readBody(message, text, { bodiless, untilClose: true, ended }));
    if (message.state !== "whole" || status === 101) return messages;
    if (status >= 200) finals += 1;
    at = message.end;
  }
  return messages;
}

export function statusOf({ line }: Message): number {
  return Number(/^HTTP\/1\.[01] (\d{3})\b/.exec(line)?.[1] ?? Number.NaN);
}

/** The values of the field, joined. */
export function valueOf(message: Message, name: string): string | undefined {
  const values = message.fields.filter(([key]) => key === name).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(", ");
}

function readHead(text: string, from: number): Message | undefined {
  const end = text.indexOf("\r\n\r\n", from);
  if (end === -1) return undefined;
  const [line = "", ...lines] = text.slice(from, end).split("\r\n");
  return { line, fields: fieldsOf(lines), body: "", trailers: [], state: "partial", end: end + 4 };
}

function fieldsOf(lines: string[]): [string, string][] {
  return lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
}

interface Ways {
  bodiless: boolean;
  /** Whether a body without framing ends with the connection; otherwise there is no body. */
  untilClose: boolean;
  ended: boolean;
}

function readBody(message: Message, text: string, { bodiless, untilClose, ended }: Ways): Message {
  const [coding, length] = [valueOf(message, "transfer-encoding"), valueOf(message, "content-length")];
  if (bodiless) message.state = "whole";
  else if (coding !== undefined && length !== undefined) message.state = "broken";
  else if (coding !== undefined) readChunks(message, text, coding);
  else if (length !== undefined) readLength(message, text, length);
  else if (untilClose) {
    message.body = text.slice(message.end);
    message.end = text.length;
    message.state = ended ? "whole" : "partial";
  } else message.state = "whole";
  return message;
}

function readLength(message: Message, text: string, length: string): void {
  const end = message.end + Number(length);
  if (!/^\d+$/.test(length)) message.state = "broken";
  else if (text.length >= end) message.state = "whole";
  message.body = text.slice(message.end, end);
  message.end = Math.min(end, text.length);
}

function readChunks(message: Message, text: string, coding: string): void {
  if (coding.toLowerCase() !== "chunked") message.state = "broken";
  while (message.state === "partial") {
    const lineEnd = text.indexOf("\r\n", message.end);
    if (lineEnd === -1) return;
    const line = text.slice(message.end, lineEnd);
    const size = /^[0-9a-f]+(?=;|\s*$)/i.test(line) ? Number.parseInt(line, 16) : Number.NaN;
    if (Number.isNaN(size)) message.state = "broken";
    else if (size === 0) return readTrailers(message, text, lineEnd);
    else {
      const end = lineEnd + 2 + size;
      message.body += text.slice(lineEnd + 2, end);
      if (text.length < end + 2) return;
      if (text.slice(end, end + 2) !== "\r\n") message.state = "broken";
      message.end = end + 2;
    }
  }
}

/** `lineEnd` is the end of the last chunk's size line. */
function readTrailers(message: Message, text: string, lineEnd: number): void {
  const end = text.indexOf("\r\n\r\n", lineEnd);
  if (end === -1) return;
  message.trailers = fieldsOf(
    text
      .slice(lineEnd + 2, end)
      .split("\r\n")
      .filter(Boolean),
  );
  message.end = end + 4;
  message.state = "whole";
}
