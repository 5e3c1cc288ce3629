/** Where we accept a message with llhttp and yet understand it differently, and why. */
import { KNOWN_METHODS } from "./native-parser.ts";
import type { OracleHead } from "./oracle.ts";
import type { Reading, Stream } from "./reading.ts";
import { request, response, values } from "./taken.ts";

/** What is understood differently: whether the connection is kept, becomes a tunnel, or where the message ends. */
export type Aspect = "keepAlive" | "upgrade" | "end";

export interface Difference {
  name: string;
  reason: string;
  aspect: Aspect;
  /** What we make of it. */
  ours: boolean;
  example: Stream & { text: string };
  applies(head: OracleHead, stream: Stream): boolean;
}

const UPGRADE = "Host: a.test\r\nConnection: Upgrade\r\n";
const INTERIM_WITHOUT_BODY = [100, 101, 102, 103];

function isFramed(head: OracleHead): boolean {
  const theirs = { head };
  if (values({ theirs }, "transfer-encoding").length > 0) return true;
  return values({ theirs }, "content-length").some((each) => Number(each) > 0);
}

/** Whether version and Connection leave the connection open; a body without a length may still end it. */
function persists(head: OracleHead): boolean {
  const options = values({ theirs: { head } }, "connection").flatMap((value) =>
    value.toLowerCase().split(/[ \t]*,[ \t]*/),
  );
  return head.version === "1.1" ? !options.includes("close") : options.includes("keep-alive");
}

export const DIFFERENCES: readonly Difference[] = [
  {
    name: "upgrade with a body",
    reason:
      "RFC 9110 7.8 lets a server ignore the wish; where the body ends and the other protocol begins is too easy to mistake.",
    aspect: "upgrade",
    ours: false,
    example: request(`POST / HTTP/1.1\r\n${UPGRADE}Upgrade: x\r\nContent-Length: 1\r\n\r\na`),
    applies: (head) => head.upgrade && isFramed(head),
  },
  {
    name: "upgrade to HTTP/2",
    reason: "Behind it, requests would reach the app that nobody has looked at.",
    aspect: "upgrade",
    ours: false,
    example: request(`GET / HTTP/1.1\r\n${UPGRADE}Upgrade: h2c\r\n\r\n`),
    applies: (head) =>
      head.upgrade &&
      values({ theirs: { head } }, "upgrade").some((value) =>
        value.split(/[\s,]/).some((each) => /^h2c?\b/i.test(each)),
      ),
  },
  {
    name: "upgrade in HTTP/1.0",
    reason: "A server must ignore it there (RFC 9110 7.8).",
    aspect: "upgrade",
    ours: false,
    example: request(`GET / HTTP/1.0\r\n${UPGRADE}Upgrade: x\r\n\r\n`),
    applies: (head) => head.upgrade && head.version === "1.0",
  },
  {
    name: "response to HEAD without a length",
    reason: "llhttp says whether the connection is kept before it is told that no body follows.",
    aspect: "keepAlive",
    ours: true,
    example: response("HTTP/1.1 200 OK\r\n\r\n", "HEAD"),
    applies: (head, stream) => stream.side === "response" && stream.method === "HEAD" && persists(head),
  },
  {
    name: "body of an interim response",
    reason: "No 1xx has one (RFC 9112 6.3); llhttp knows that of those that are in use.",
    aspect: "end",
    ours: true,
    example: response("HTTP/1.1 199 Own\r\nContent-Length: 1\r\n\r\n"),
    applies: (head, stream) =>
      stream.side === "response" &&
      stream.method !== "HEAD" &&
      head.status < 200 &&
      !INTERIM_WITHOUT_BODY.includes(head.status) &&
      isFramed(head),
  },
];

/** Names that no trailer can have for llhttp. */
const FRAMING = /^(?:content-length|transfer-encoding)$/;
const TAB_BEHIND_FRAMING = /(?<=\r\n)(?:content-length|transfer-encoding):[^\r\n]*\t(?=[ \t]*\r\n)/gi;

/**
 * The message that we accept, with what llhttp refuses in principle put in other words:
 * - methods that it does not know, although RFC 9110 9.1 leaves their number open;
 * - tabs behind a value that frames, which RFC 9110 5.5 has trimmed like blanks; the proxy rewrites that field;
 * - trailers that frame a message, which mean nothing there and are not passed on.
 */
export function inTheirWords(message: Buffer, { request: read, start, headEnd, trailers }: Reading): Buffer {
  if (headEnd === undefined) return message;
  let text = message.toString("latin1");
  if (trailers.some(({ key }) => FRAMING.test(key))) {
    // One line for each, and the empty one.
    const lines = text.split("\r\n").slice(-trailers.length - 2);
    const section = lines.join("\r\n");
    text = text.slice(0, -section.length) + section.replace(/^[^:\r\n]+/gm, trailerInTheirWords);
  }
  text = text.replace(TAB_BEHIND_FRAMING, (line, at: number) =>
    at < headEnd - start ? line.replaceAll("\t", " ") : line,
  );
  if (read !== undefined && !KNOWN_METHODS.has(read.method)) text = text.replace(read.method, "POST");
  return Buffer.from(text, "latin1");
}

/** A trailer's name as {@link inTheirWords} spells it. */
export function trailerInTheirWords(name: string): string {
  return FRAMING.test(name.toLowerCase()) ? `X${name.slice(1)}` : name;
}
