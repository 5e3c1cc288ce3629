/** Methods, targets and versions (RFC 9112 3; RFC 9110 9). */
import { both, type Case, fine, get, HOST, refused } from "../case.ts";

/** A request with this first line. */
const line = (name: string, first: string, more: Partial<Case> = {}): Case => ({
  name,
  client: [`${first}\r\n${HOST}\r\n`],
  ours: refused(400),
  ...more,
});

const TOKEN = { nginx: "does not accept such letters in a method; any token is valid (RFC 9110 9.1)" };
const BLANKS = "splits at any white space; RFC 9112 3 allows that, and says what comes of it";
const REFUSES_HOST = { HAProxy: "wants Host to be the same; RFC 9112 3.2.2 has a proxy ignore Host then" };

const LONG = `/${"a".repeat(7000)}`;

export const REQUEST_LINES: readonly Case[] = [
  line("DELETE", "DELETE /a HTTP/1.1", { ours: fine("DELETE /a") }),
  line("an unknown method", "FROBNICATE /a HTTP/1.1", { ours: fine("FROBNICATE /a") }),
  line("a method in small letters is another method", "get /a HTTP/1.1", { ours: fine("get /a"), differs: TOKEN }),
  line("a method with odd characters", "M-SEARCH! /a HTTP/1.1", { ours: fine("M-SEARCH! /a"), differs: TOKEN }),
  line("a method that is not a token", "GE(T /a HTTP/1.1"),
  line("CONNECT", "CONNECT shop.test:443 HTTP/1.1", {
    asks: ["CONNECT"],
    ours: refused(405),
    differs: {
      nginx: "says 400; the request is well-formed, and nobody serves its method here (RFC 9110 15.5.6)",
      HAProxy: "passes it on; a gateway that does not proxy other hosts opens no tunnels (RFC 9110 9.3.6)",
    },
  }),
  line("TRACE", "TRACE /a HTTP/1.1", {
    ours: fine("TRACE /a"),
    differs: { nginx: "refuses all of TRACE; what the app makes of it is the app's business (RFC 9110 9.3.8)" },
  }),
  line("OPTIONS *", "OPTIONS * HTTP/1.1", {
    ours: fine("OPTIONS *"),
    differs: { nginx: "does not know the asterisk-form of RFC 9112 3.2.4" },
  }),
  line("GET *", "GET * HTTP/1.1", {
    differs: { HAProxy: "passes it on; the asterisk is for OPTIONS only (RFC 9112 3.2.4)" },
  }),
  line("a target of 7 KB", `GET ${LONG} HTTP/1.1`, { ours: fine(`GET ${LONG}`) }),
  line("a target of 100 KB", `GET /${"a".repeat(100_000)} HTTP/1.1`, {
    ours: refused(414),
    differs: { HAProxy: "says 400; 414 is what RFC 9112 3 wants" },
  }),
  line("a target is not changed", "GET /a//b/../c%2f?x=%20%00&y=[1]|{2} HTTP/1.1", {
    ours: fine("GET /a//b/../c%2f?x=%20%00&y=[1]|{2}"),
  }),
  line("a backslash in a target", "GET /a\\b HTTP/1.1", { ours: fine("GET /a\\b") }),
  line("an absolute target, whose host wins", "GET http://other.test/a?b HTTP/1.1", {
    look: ["host"],
    ours: fine("GET /a?b {host: other.test}"),
    differs: REFUSES_HOST,
  }),
  line("an absolute target without a path", "GET http://other.test?b HTTP/1.1", {
    look: ["host"],
    ours: fine("GET /?b {host: other.test}"),
    differs: REFUSES_HOST,
  }),
  line("an absolute target with an empty host", "GET http:///a HTTP/1.1", {
    differs: { HAProxy: "passes it on; a recipient must refuse it (RFC 9110 4.2.1)" },
  }),
  line("an absolute target with a user", "GET http://me@other.test/ HTTP/1.1"),
  line("an absolute target of another scheme", "GET ftp://other.test/ HTTP/1.1", {
    differs: { nginx: "takes it for http; this gateway speaks for no other scheme (RFC 9110 7.4)" },
  }),
  line("an absolute target and no Host", "", {
    client: ["GET http://other.test/ HTTP/1.1\r\n\r\n"],
    differs: { HAProxy: "passes it on; RFC 9112 3.2 wants 400 for any HTTP/1.1 request without Host" },
  }),
  line("a target without a slash", "GET a HTTP/1.1"),
  line("a host and port as target", "GET shop.test:80 HTTP/1.1"),
  line("a fragment", "GET /a#b HTTP/1.1", {
    differs: { nginx: "passes it on; no form of a target has one (RFC 9112 3.2)" },
  }),
  line("a blank in the target", "GET /a b HTTP/1.1"),
  line("bytes above ASCII in the target", "GET /\xe4 HTTP/1.1", {
    differs: { nginx: "passes them on; targets are ASCII (RFC 9112 3.2, RFC 3986 2)" },
  }),
  line("NUL in the target", "GET /\0 HTTP/1.1"),
  line("two blanks", "GET  / HTTP/1.1", { differs: both(BLANKS) }),
  line("a tab for a blank", "GET\t/ HTTP/1.1", { differs: { HAProxy: BLANKS } }),
  line("a blank before the method", " GET / HTTP/1.1"),
  line("a blank behind the version", "GET / HTTP/1.1 ", { differs: { nginx: BLANKS } }),
  line("no version", "GET /", {
    differs: { nginx: "reads HTTP/0.9, which RFC 9112 no longer has" },
  }),
  line("a version in small letters", "GET / http/1.1"),
  line("HTTP/1.2", "GET / HTTP/1.2", {
    ours: refused(505),
    differs: both("reads it as 1.1, as RFC 9110 2.5 advises; there is none, and ours serves what it knows"),
  }),
  line("HTTP/2.0", "GET / HTTP/2.0", {
    ours: refused(505),
    differs: { HAProxy: "reads it as 1.1; HTTP/2 has other frames (RFC 9113 3.4)" },
  }),
  line("HTTP/0.9 by its number", "GET / HTTP/0.9", {
    ours: refused(505),
    differs: {
      nginx: "says 400; the version is well-formed, and its major number not served (RFC 9110 15.6.6)",
      HAProxy: "reads it as an older 1.1; RFC 9112 does not have such a version",
    },
  }),
  line("HTTP/1.10", "GET / HTTP/1.10", {
    differs: { nginx: "reads any number; a version has one digit on each side (RFC 9112 2.3)" },
  }),
  line("an empty line before the request", "", { client: [`\r\n${get("/a")}`], ours: fine("GET /a") }),
  line("an LF before the request", "", {
    client: [`\n${get("/a")}`],
    differs: both("takes LF for an empty line, as RFC 9112 2.2 allows; ours ends lines in CR LF"),
  }),
  line("TLS on a plain port", "", { client: ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"] }),
];
