/** Refusals for what is between the data of a chunked body. */
import { LIMITS } from "./reading.ts";
import { type Class, chunkLines, exceeds, request, response } from "./taken.ts";

const MOST_SIZE_DIGITS = 12;
const MOST_EXTENSION = 256;
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const QUOTED = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"';
const EXTENSIONS = new RegExp(`^(?:;${TOKEN}(?:=(?:${TOKEN}|${QUOTED}))?)*$`);

/** The same body as a request's and as a response's. */
function both(body: string) {
  const framed = `Transfer-Encoding: chunked\r\n\r\n${body}`;
  return [request(`POST / HTTP/1.1\r\nHost: a.test\r\n${framed}`), response(`HTTP/1.1 200 OK\r\n${framed}`)];
}

export const CHUNK_CLASSES: readonly Class[] = [
  {
    name: "digits of a chunk's size",
    reason: "More than a body ever needs, or a row of zeros to hide a size behind.",
    examples: both("0000000000003\r\nabc\r\n0\r\n\r\n"),
    applies: (taken) => chunkLines(taken).sizes.some((size) => size.length > MOST_SIZE_DIGITS),
  },
  {
    name: "grammar of extensions",
    reason: "llhttp lets names and values be empty; RFC 9112 7.1.1 does not. Nobody sends them but to try us.",
    examples: ["3;;a", "3;=b", "3;a="].flatMap((line) => both(`${line}\r\nabc\r\n0\r\n\r\n`)),
    applies: (taken) => chunkLines(taken).extensions.some((each) => !EXTENSIONS.test(each)),
  },
  {
    name: "long extensions",
    reason: "They are dropped, so a client could keep us busy with them for nothing.",
    examples: both(`3;${"a".repeat(MOST_EXTENSION)}\r\nabc\r\n0\r\n\r\n`),
    applies: (taken) => chunkLines(taken).extensions.some((each) => each.length > MOST_EXTENSION),
  },
  {
    name: "large trailers",
    reason: "A bound of ours.",
    examples: both(`0\r\nX: ${"x".repeat(LIMITS.headBytes)}\r\n\r\n`),
    applies: (taken) => exceeds(chunkLines(taken).trailers, LIMITS.headBytes),
  },
  {
    name: "many trailers",
    reason: "A bound of ours.",
    examples: both(`0\r\n${"X: x\r\n".repeat(LIMITS.headFields + 1)}\r\n`),
    applies: ({ theirs }) => theirs.trailers.length > LIMITS.headFields,
  },
];
