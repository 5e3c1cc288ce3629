/** Field lines as they should be, and as attackers write them (RFC 9112 2.2, 5; RFC 9110 5). */
import { both, type Case, fine, get, HOST, refused } from "../case.ts";
import { shown } from "../texts.ts";

/** A GET with these lines behind Host. */
const lines = (name: string, fields: string, more: Partial<Case> = {}): Case => ({
  name,
  client: [get("/", fields)],
  ours: refused(400),
  ...more,
});

/** A GET with these lines in place of Host. */
const host = (name: string, fields: string, more: Partial<Case> = {}): Case => ({
  name,
  client: [`GET / HTTP/1.1\r\n${fields}\r\n`],
  look: ["host"],
  ours: refused(400),
  ...more,
});

const SAYS_400 = both("says 400; 431 says what was wrong (RFC 6585 5)");
const LF = both("takes LF for the end of a line, as RFC 9112 2.2 allows; the next recipient may not");
const DROPS = "drops the field and continues; names are tokens (RFC 9110 5.1), and a malformed head gets 400";
const UNFOLDS = { HAProxy: "unfolds, which RFC 9112 5.2 allows as well as 400" };
const ANY_HOST = "passes any Host on; RFC 9112 3.2 wants 400 for one that is not a host";
const PASSES_ANY_HOST = { HAProxy: ANY_HOST };

const fields = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}: ${index}\r\n`).join("");

export const HEADS: readonly Case[] = [
  lines("a field of 8 KB", `X-Big: ${"a".repeat(8000)}\r\n`, {
    look: ["x-big"],
    ours: fine(`GET / {x-big: ${shown("a".repeat(8000))}}`),
  }),
  lines("80 fields", fields(80), { look: ["x-0", "x-79"], ours: fine("GET / {x-0: 0; x-79: 79}") }),
  lines("a field of 100 KB", `X-Big: ${"a".repeat(100_000)}\r\n`, { ours: refused(431), differs: SAYS_400 }),
  lines("10,000 fields", fields(10_000), { ours: refused(431), differs: SAYS_400 }),
  lines("a head split at every byte", "", {
    client: [{ slowly: get("/slow", "X-A: b\r\n") }],
    look: ["x-a"],
    ours: fine("GET /slow {x-a: b}"),
  }),
  lines("names in any spelling", "x-A: 1\r\nX-B: 2\r\n", {
    look: ["x-a", "x-b"],
    ours: fine("GET / {x-a: 1; x-b: 2}"),
  }),
  lines("odd, but valid names", "!#$%&'*+-.^_`|~09: 1\r\n", {
    look: ["!#$%&'*+-.^_`|~09"],
    ours: fine("GET / {!#$%&'*+-.^_`|~09: 1}"),
    differs: { nginx: "drops names with other than letters, digits and hyphens; they are tokens (RFC 9110 5.1)" },
  }),
  lines("an underscore in a name", "X_A: 1\r\n", {
    look: ["x_a"],
    ours: fine("GET / {x_a: 1}"),
    differs: { nginx: "drops names with underscores; proxies pass on what they do not know (RFC 9110 5.1)" },
  }),
  lines("an empty value", "X-A:\r\nX-B: \t \r\n", { look: ["x-a", "x-b"], ours: fine("GET / {x-a: ; x-b: }") }),
  lines("no blank behind the colon, and tabs around the value", "X-A:1\r\nX-B:\t2\t\r\n", {
    look: ["x-a", "x-b"],
    ours: fine("GET / {x-a: 1; x-b: 2}"),
  }),
  lines("bytes above ASCII in a value", "X-A: \xe4\xf6\r\n", {
    look: ["x-a"],
    ours: fine("GET / {x-a: \\xe4\\xf6}"),
  }),
  lines("the same field twice keeps its order", "X-A: 1\r\nX-B: 2\r\nX-A: 3\r\n", {
    look: ["x-a", "x-b"],
    ours: fine("GET / {x-a: 1; x-a: 3; x-b: 2}"),
  }),
  lines("a folded line", "X-A: 1\r\n 2\r\n", { differs: UNFOLDS }),
  lines("a folded line with a tab", "X-A: 1\r\n\t2\r\n", { differs: UNFOLDS }),
  lines("a folded first line", "", { client: [`GET / HTTP/1.1\r\n X-A: 1\r\n${HOST}\r\n`] }),
  lines("a line ended by LF", "X-A: 1\nX-B: 2\r\n", { differs: LF }),
  lines("all lines ended by LF", "", { client: ["GET / HTTP/1.1\nHost: shop.test\n\n"], differs: LF }),
  lines("a CR in a value", "X-A: 1\r2\r\n"),
  lines("a NUL in a value", "X-A: 1\x002\r\n", {
    differs: { HAProxy: "passes it on; RFC 9110 5.5 calls it invalid and dangerous" },
  }),
  lines("a NUL in a name", "X-\0A: 1\r\n"),
  lines("another control character in a value", "X-A: 1\x012\r\n", {
    differs: both("passes it on; RFC 9110 5.5 calls it invalid, and lets it stay only where it is harmless"),
  }),
  lines("a blank before the colon", "X-A : 1\r\n"),
  lines("a blank in a name", "X A: 1\r\n"),
  lines("an empty name", ": 1\r\n"),
  lines("a line without a colon", "X-A\r\n", { differs: { nginx: DROPS } }),
  lines("a name that is not a token", "X(A): 1\r\n", { differs: { nginx: DROPS } }),
  lines("a name above ASCII", "X\xe4: 1\r\n", { differs: { nginx: DROPS } }),
  host("no Host", "X-A: 1\r\n", { differs: { HAProxy: "passes it on; RFC 9112 3.2 wants 400" } }),
  host("two Hosts", "Host: a.test\r\nHost: b.test\r\n"),
  host("the same Host twice", "Host: a.test\r\nHost: a.test\r\n", {
    differs: { HAProxy: "makes one of them; RFC 9112 3.2 wants 400 for more than one" },
  }),
  host("an empty Host", "Host:\r\n", {
    differs: { HAProxy: "passes it on, as RFC 9112 3.2 allows; ours cannot tell for which app it is" },
  }),
  host("a Host with a path", "Host: a.test/b\r\n", { differs: PASSES_ANY_HOST }),
  host("a Host with a user", "Host: me@a.test\r\n", { differs: both(ANY_HOST) }),
  host("a Host with a blank", "Host: a.test b.test\r\n", { differs: PASSES_ANY_HOST }),
  host("a list of Hosts", "Host: a.test, b.test\r\n", { differs: PASSES_ANY_HOST }),
  host("a Host with an invalid port", "Host: a.test:99999\r\n", {
    differs: { nginx: "leaves the port out unread; RFC 9112 3.2 wants 400", HAProxy: ANY_HOST },
  }),
  host("a Host with a port that is a word", "Host: a.test:http\r\n", {
    differs: { nginx: "leaves the port out unread; RFC 9112 3.2 wants 400", HAProxy: ANY_HOST },
  }),
  host("a Host in capitals", "Host: A.Test\r\n", {
    ours: fine("GET / {host: A.Test}"),
    differs: { nginx: "tells the app its own spelling, `$host`; ours leaves Host as it is" },
  }),
  host("a Host with a port", "Host: a.test:8080\r\n", {
    ours: fine("GET / {host: a.test:8080}"),
    differs: { nginx: "tells the app no port, as `$host` has none; apps make links of it" },
  }),
  host("an IPv6 address as Host", "Host: [::1]\r\n", { ours: fine("GET / {host: [::1]}") }),
  lines("fields that Connection names end here", "X-Foo: 1\r\nX-Bar: 2\r\nConnection: X-Foo\r\n", {
    look: ["x-foo", "x-bar"],
    ours: fine("GET / {x-bar: 2}"),
    differs: both("passes on what Connection names; RFC 9110 7.6.1 wants it removed"),
  }),
  lines("fields of one hop end here", "Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nTE: gzip\r\n", {
    look: ["keep-alive", "proxy-connection", "te"],
    ours: fine("GET /"),
    differs: both("passes Proxy-Connection on; RFC 9110 7.6.1 wants it removed"),
  }),
  lines("Connection cannot take away what frames the body", "", {
    client: [`POST / HTTP/1.1\r\n${HOST}Connection: Content-Length, Host\r\nContent-Length: 5\r\n\r\nhello`],
    look: ["host"],
    ours: fine("POST / hello {host: shop.test}"),
  }),
  lines("TE: trailers is passed on", "TE: trailers\r\nConnection: TE\r\n", {
    look: ["te"],
    ours: fine("GET / {te: trailers}"),
    differs: { nginx: "drops TE, as it drops trailers; ours passes them on (RFC 9110 10.1.4)" },
  }),
  lines("Proxy is not passed on to CGI", "Proxy: evil.test\r\n", {
    look: ["proxy"],
    ours: fine("GET /"),
    differs: both("passes it on; no such field exists, and CGI would make HTTP_PROXY of it"),
  }),
];
