/** Bodies of requests in chunks: what is well-formed arrives as it is, the rest never reaches an app (RFC 9112 7.1). */
import { APP_ASKED, both, type Case, CLIENT_ENDS, chunk, chunked, fine, get, LAST_CHUNK, refused } from "../case.ts";
import { shown } from "../texts.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const LONG = LETTERS.repeat(4000);

const LF = both(
  "takes a bare LF for the end of the line; where two readers disagree about that, requests are smuggled",
);
const BLANKS = both("skips blanks behind the size, which the grammar has only before a semicolon (RFC 9112 7.1)");
const NO_TRAILERS =
  "drops trailers unread, malformed or not; ours passes them on, and must look at them (RFC 9112 7.1.2)";

/** A body whose chunks are none. */
const malformed = (name: string, body: string, differs: Case["differs"] = {}): Case => ({
  name,
  client: [chunked(body)],
  ours: refused(400),
  differs,
});

export const CHUNKED_REQUESTS: readonly Case[] = [
  {
    name: "one chunk",
    client: [chunked(chunk("hello") + LAST_CHUNK)],
    ours: fine("POST / hello"),
  },
  {
    name: "no data at all",
    client: [chunked(LAST_CHUNK)],
    ours: fine("POST /"),
  },
  {
    name: "extensions are dropped",
    client: [chunked('3;a=b\r\nabc\r\n4;c="d;e";f\r\ndefg\r\n0;last\r\n\r\n')],
    ours: fine("POST / abcdefg"),
  },
  {
    name: "blanks before an extension",
    client: [chunked("3 ;a\r\nabc\r\n0\r\n\r\n")],
    ours: refused(400),
    differs: both("reads this bad whitespace, as RFC 9110 5.6.3 would have it; nobody may send it, and ours is strict"),
  },
  {
    name: "sizes in capitals, with zeros before them",
    client: [chunked(`00A\r\nabcdefghij\r\n${LAST_CHUNK}`)],
    ours: fine("POST / abcdefghij"),
  },
  {
    name: "many tiny chunks in one packet",
    client: [chunked(LETTERS.repeat(20).split("").map(chunk).join("") + LAST_CHUNK)],
    ours: fine(`POST / ${shown(LETTERS.repeat(20))}`),
  },
  {
    name: "split at every byte",
    client: [{ slowly: chunked(`${chunk("hello")}3;ext\r\nabc\r\n${LAST_CHUNK}`) }],
    ours: fine("POST / helloabc"),
  },
  {
    name: "100 KB in one chunk",
    client: [chunked(chunk(LONG) + LAST_CHUNK)],
    ours: fine(`POST / ${shown(LONG)}`),
  },
  {
    name: "a next request directly behind the last chunk",
    client: [chunked(chunk("hello") + LAST_CHUNK) + get("/second")],
    asks: ["POST", "GET"],
    ours: { answers: ["200 ok", "200 ok"], seen: ["POST / hello", "GET /second"], after: "open" },
  },
  {
    name: "trailers",
    client: [chunked(`${chunk("hello")}0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n`)],
    ours: fine("POST / hello + x-sum: 1 + x-other: 2"),
    differs: { nginx: "drops trailers, as RFC 9112 7.1.2 allows" },
  },
  {
    name: "trailers that frame or route",
    client: [chunked(`${chunk("hello")}0\r\nContent-Length: 50\r\nHost: evil.test\r\nTransfer-Encoding: x\r\n\r\n`)],
    ours: fine("POST / hello"),
    differs: { HAProxy: "refuses what RFC 9110 6.5.1 lets a recipient leave out" },
  },
  {
    name: "a client that leaves in the middle of a chunk",
    client: [chunked("5\r\nhe"), CLIENT_ENDS],
    ours: { answers: [], seen: [], after: "closed" },
  },
  {
    name: "a client that leaves before the last chunk",
    client: [chunked(chunk("hello")), CLIENT_ENDS],
    ours: { answers: [], seen: [], after: "closed" },
  },
  {
    name: "a malformed chunk when the app has already begun to read",
    client: [chunked(chunk("hello")), APP_ASKED, "0x5\r\nhello\r\n0\r\n\r\n"],
    ours: refused(400),
  },
  malformed("a size with 0x", `0x3\r\nabc\r\n${LAST_CHUNK}`),
  malformed("a size with a plus", `+3\r\nabc\r\n${LAST_CHUNK}`),
  malformed("a size with a minus", `-3\r\nabc\r\n${LAST_CHUNK}`),
  malformed("a size with an underscore", `0_3\r\nabc\r\n${LAST_CHUNK}`),
  malformed("a size behind a blank", ` 3\r\nabc\r\n${LAST_CHUNK}`),
  malformed("a size before a blank", `3 \r\nabc\r\n${LAST_CHUNK}`, BLANKS),
  malformed("an empty size", `\r\nabc\r\n${LAST_CHUNK}`),
  malformed("a size beyond 64 bits", `10000000000000003\r\nabc\r\n${LAST_CHUNK}`),
  malformed(
    "a size of many zeros",
    `${"0".repeat(40)}3\r\nabc\r\n${LAST_CHUNK}`,
    both("counts no digits; ours has a bound, that no reader behind it overflows (RFC 9112 7.1)"),
  ),
  malformed("data without CR LF", `3\r\nabc${LAST_CHUNK}`),
  malformed("data longer than its size", `3\r\nabcd\r\n${LAST_CHUNK}`),
  malformed("data ended by LF", `3\r\nabc\n${LAST_CHUNK}`, LF),
  malformed("a size line ended by LF", `3\nabc\r\n${LAST_CHUNK}`, LF),
  malformed("a size line ended by CR", `3\rabc\r\n${LAST_CHUNK}`),
  malformed("LF in an extension", `3;a\nb\r\nabc\r\n${LAST_CHUNK}`),
  malformed(
    "NUL in an extension",
    `3;a\0b\r\nabc\r\n${LAST_CHUNK}`,
    both("does not look at extensions; their names are tokens (RFC 9112 7.1.1)"),
  ),
  malformed("LF only behind the last chunk", "0\n\n", LF),
  malformed("a trailer without a name", "0\r\n: 1\r\n\r\n", { nginx: NO_TRAILERS }),
  malformed("a folded trailer", "0\r\nX-A: 1\r\n 2\r\n\r\n", {
    nginx: NO_TRAILERS,
    HAProxy: "unfolds, which RFC 9112 5.2 allows as well as 400",
  }),
  {
    name: "an extension without an end",
    client: [chunked(`3;${"a".repeat(20_000)}\r\nabc\r\n${LAST_CHUNK}`)],
    ours: refused(431),
    differs: {
      nginx: "reads extensions without a bound, against which RFC 9112 7.1.1 advises",
      HAProxy: "says 400; RFC 9112 7.1.1 asks for some 4xx, and 431 says what was wrong",
    },
  },
];
