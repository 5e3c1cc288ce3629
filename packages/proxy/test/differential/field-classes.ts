/** Refusals for what a message's fields say. */
import { isHost } from "./line-classes.ts";
import { LIMITS } from "./reading.ts";
import { type Class, exceeds, request, response, values, withoutEmptyLines } from "./taken.ts";

const POST = "POST / HTTP/1.1\r\nHost: a.test\r\n";
const OK = "HTTP/1.1 200 OK\r\n";
const LAST_CHUNK = "\r\n0\r\n\r\n";
const MOST_LENGTH_DIGITS = 15;

export const FIELD_CLASSES: readonly Class[] = [
  {
    name: "no Host",
    reason: "Hosts are what tells our apps apart. llhttp leaves it to Node's server, which refuses as well.",
    examples: [request("GET / HTTP/1.1\r\n\r\n"), request("GET / HTTP/1.0\r\n\r\n")],
    applies: (taken) =>
      taken.side === "request" && taken.theirs.head !== undefined && values(taken, "host").length === 0,
  },
  {
    name: "Host more than once",
    reason: "Two readers could choose different ones.",
    examples: [request(`${POST}Host: a.test\r\n\r\n`)],
    applies: (taken) => taken.side === "request" && values(taken, "host").length > 1,
  },
  {
    name: "odd Host",
    reason: "It is a name or an address, with a port or without: nothing that could be cut in two ways.",
    examples: ["", "a.test, b.test", "a.test/b", "b@a.test", "a.test:65536", "\xe9"].map((host) =>
      request(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    ),
    applies: (taken) => taken.side === "request" && values(taken, "host").some((host) => !isHost(host)),
  },
  {
    name: "transfer coding",
    reason: "Only `chunked`: what others make of another coding, or of a list, differs from one to the next.",
    examples: ["gzip, chunked"].flatMap((coding) => [
      request(`${POST}Transfer-Encoding: ${coding}\r\n${LAST_CHUNK}`),
      response(`${OK}Transfer-Encoding: ${coding}\r\n${LAST_CHUNK}`),
    ]),
    applies: (taken) => values(taken, "transfer-encoding").some((value) => value.toLowerCase() !== "chunked"),
  },
  {
    name: "Transfer-Encoding more than once",
    reason: "Chunked twice cannot be, and some take only the first or the last.",
    examples: [response(`${OK}${"Transfer-Encoding: chunked\r\n".repeat(2)}${LAST_CHUNK}`)],
    applies: (taken) => values(taken, "transfer-encoding").length > 1,
  },
  {
    name: "Transfer-Encoding in HTTP/1.0",
    reason: "That version does not have it, so that others may read until the close (RFC 9112 6.1).",
    examples: [
      request(`POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n${LAST_CHUNK}`),
      response(`HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n${LAST_CHUNK}`),
    ],
    applies: (taken) => taken.theirs.head?.version === "1.0" && values(taken, "transfer-encoding").length > 0,
  },
  {
    name: "underscores",
    reason: "Gateways that make variables of fields do not tell these names from those that frame the message.",
    examples: [request(`${POST}Content_Length: 4\r\n\r\n`), response(`${OK}transfer_encoding: chunked\r\n\r\n`)],
    applies: (taken) => values(taken, "content_length").length + values(taken, "transfer_encoding").length > 0,
  },
  {
    name: "digits of Content-Length",
    reason: "More than can be counted exactly, or a row of zeros to hide a length behind.",
    examples: [
      request(`${POST}Content-Length: 0000000000000000\r\n\r\n`),
      response(`${OK}Content-Length: 1000000000000000\r\n\r\n`),
    ],
    applies: (taken) => values(taken, "content-length").some((value) => value.length > MOST_LENGTH_DIGITS),
  },
  {
    name: "large head",
    reason: "A bound of ours.",
    examples: [
      request(`${POST}X: ${"x".repeat(LIMITS.headBytes)}\r\n\r\n`),
      response(`${OK}X: ${"x".repeat(LIMITS.headBytes)}`),
    ],
    applies: ({ head }) => exceeds(withoutEmptyLines(head).head, LIMITS.headBytes),
  },
  {
    name: "many fields",
    reason: "A bound of ours.",
    examples: [
      request(`${POST}${"X: x\r\n".repeat(LIMITS.headFields)}\r\n`),
      response(`${OK}${"X: x\r\n".repeat(LIMITS.headFields + 1)}\r\n`),
    ],
    applies: ({ theirs }) => (theirs.head?.fields.length ?? 0) > LIMITS.headFields,
  },
];
