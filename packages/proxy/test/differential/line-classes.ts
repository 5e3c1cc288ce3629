/** Refusals for a message's first line, and for what separates lines. */

import { MOST_EMPTY_LINES } from "./reading.ts";
import { type Class, request, response, withoutEmptyLines } from "./taken.ts";

const HOST = "Host: a.test\r\n\r\n";
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

function isAuthority(text: string): boolean {
  const [, host = "", port = "0"] = /^(.*?)(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (Number(port) > 65_535) return false;
  return /^[\w-][\w.-]{0,252}$/.test(host) || /^\[[0-9a-f:.]{2,45}\]$/i.test(host);
}

/** Whether an app can be asked for it: a path, or one on a host, or everything for OPTIONS. */
function isTarget(method: string, target: string): boolean {
  if (target === "*") return method === "OPTIONS";
  const [, authority, rest = ""] = ABSOLUTE.exec(target) ?? [];
  const path = authority === undefined ? target : rest;
  if (!/^[\x21\x22\x24-\x7e]*$/.test(path)) return false;
  return authority === undefined ? path.startsWith("/") : isAuthority(authority);
}

/** The values of Host are held to the same rule as the authority of a target. */
export const isHost = isAuthority;

export const LINE_CLASSES: readonly Class[] = [
  {
    name: "bare CR or LF",
    reason:
      "Lines end in CR LF. llhttp skips single ones before a message, and the next recipient may see a line there.",
    examples: [request(`\nGET / HTTP/1.1\r\n${HOST}`), response("\rHTTP/1.1 200 OK\r\n\r\n")],
    applies: ({ head }) => /(?:^|[^\r])\n|\r(?!\n)/.test(head),
  },
  {
    name: "control characters",
    reason: "llhttp lets them stand in a reason phrase; RFC 9112 4 does not, and we would pass them on.",
    examples: [response("HTTP/1.1 200 O\0K\r\n\r\n"), response("HTTP/1.1 200 \x7f\r\n\r\n")],
    applies: ({ head }) => /[^\t\r\n\x20-\x7e\x80-\xff]/.test(head),
  },
  {
    name: "empty lines",
    reason:
      "RFC 9112 2.2 wants one before a request ignored. We allow a few, so that they end, and none before a response.",
    examples: [
      request(`${"\r\n".repeat(MOST_EMPTY_LINES + 1)}GET / HTTP/1.1\r\n${HOST}`),
      response("\r\nHTTP/1.1 200 OK\r\n\r\n"),
    ],
    applies: ({ side, head }) => withoutEmptyLines(head).empty > (side === "request" ? MOST_EMPTY_LINES : 0),
  },
  {
    name: "blanks in the request line",
    reason: "RFC 9112 3 has one blank between its words; with more, a target may begin or end with one.",
    examples: [request(`GET  / HTTP/1.1\r\n${HOST}`), request(`GET /  HTTP/1.1\r\n${HOST}`)],
    applies: ({ side, head }) => side === "request" && /^[^\r\n]* {2}/.test(withoutEmptyLines(head).head),
  },
  {
    name: "another protocol",
    reason: "llhttp also reads RTSP, ICE and the first bytes of HTTP/2, which no app of ours speaks.",
    examples: [
      request(`GET / RTSP/1.0\r\n${HOST}`),
      request(`SOURCE / ICE/1.0\r\n${HOST}`),
      request("PRI * HTTP/2.0\r\n\r\n"),
    ],
    applies: ({ side, head }) =>
      side === "request" && /^[^\r\n]* (?:RTSP|ICE)\/|^PRI \* HTTP\/2/.test(withoutEmptyLines(head).head),
  },
  {
    name: "version",
    reason: "Only 1.1 and 1.0 are served and understood.",
    examples: [request(`GET / HTTP/2.0\r\n${HOST}`), response("HTTP/0.9 200 OK\r\n\r\n")],
    applies: ({ theirs: { head } }) => head !== undefined && !/^1\.[01]$/.test(head.version),
  },
  {
    name: "CONNECT",
    reason: "The proxy does not serve other hosts.",
    examples: [request("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")],
    applies: ({ theirs }) => theirs.head?.method === "CONNECT",
  },
  {
    name: "target",
    reason:
      "It is a path of printable ASCII without a fragment, `*` for OPTIONS, or an http URL whose host we would serve.",
    examples: [
      request(`GET * HTTP/1.1\r\n${HOST}`),
      request(`GET /#a HTTP/1.1\r\n${HOST}`),
      request(`GET http://u@a.test/ HTTP/1.1\r\n${HOST}`),
      request(`GET ftp://a.test/ HTTP/1.1\r\n${HOST}`),
      request(`GET http:///x HTTP/1.1\r\n${HOST}`),
    ],
    applies: ({ side, theirs: { head } }) =>
      side === "request" && head !== undefined && head.method !== "CONNECT" && !isTarget(head.method, head.target),
  },
  {
    name: "status below 100",
    reason: "RFC 9110 15 has none, so nothing says whether it is final.",
    examples: [response("HTTP/1.1 099 Low\r\n\r\n")],
    applies: ({ side, theirs: { head } }) => side === "response" && head !== undefined && head.status < 100,
  },
];
