/** What apps answer: well-formed answers arrive as they are (RFC 9112 6.3, 7; RFC 9110 6.4, 15). */
import { ends, slowly } from "../acts.ts";
import { answer, answerHead, both, type Case, chunk, fine, get, HOST, LAST_CHUNK } from "../case.ts";
import { shown } from "../texts.ts";

/** The app's answer to one GET, and what the client makes of it. */
const says = (name: string, atEnd: Case["atEnd"], answered: string, more: Partial<Case> = {}): Case => ({
  name,
  client: [get()],
  ...(atEnd !== undefined && { atEnd }),
  ours: fine("GET /", answered),
  ...more,
});

const CHUNKED = "Transfer-Encoding: chunked\r\n";
const LETTERS = "abcdefghijklmnopqrstuvwxyz".repeat(20);

/** Answers that have no body whatever their fields say (RFC 9112 6.3). */
const bodiless = (
  method: string,
  status: string,
  fields: string,
  answered: string,
  more: Partial<Case> = {},
): Case => ({
  name: `${method}: ${status}, ${fields === "" ? "without framing" : fields.trim()}`,
  client: [`${method} / HTTP/1.1\r\n${HOST}\r\n`],
  asks: [method],
  atEnd: answerHead(fields, status),
  look: ["content-length"],
  ours: fine(`${method} /`, answered),
  ...more,
});

const OLD = {
  HAProxy: "leaves the end of the body to the end of the connection; ours makes chunks of it (RFC 9112 6.3)",
};

export const RESPONSES: readonly Case[] = [
  says("a length", answer("hello"), "200 hello"),
  says("a length, byte by byte", slowly(answer("hello")), "200 hello"),
  says("100 KB", answer("x".repeat(100_000)), `200 ${shown("x".repeat(100_000))}`),
  says("chunks", answerHead(CHUNKED) + chunk("hello") + chunk("world") + LAST_CHUNK, "200 helloworld"),
  says("chunks, byte by byte", slowly(answerHead(CHUNKED) + chunk("hello") + LAST_CHUNK), "200 hello"),
  says("chunks with extensions", `${answerHead(CHUNKED)}5;a=b\r\nhello\r\n0;c\r\n\r\n`, "200 hello"),
  says(
    "many tiny chunks",
    answerHead(CHUNKED) + LETTERS.split("").map(chunk).join("") + LAST_CHUNK,
    `200 ${shown(LETTERS)}`,
  ),
  says("chunked in capitals", answerHead(CHUNKED.toUpperCase()) + chunk("hello") + LAST_CHUNK, "200 hello"),
  says("trailers", `${answerHead(CHUNKED)}${chunk("hello")}0\r\nX-Sum: 1\r\n\r\n`, "200 hello + x-sum: 1", {
    differs: { nginx: "drops trailers, as RFC 9112 7.1.2 allows" },
  }),
  says("trailers that frame", `${answerHead(CHUNKED)}${chunk("hello")}0\r\nContent-Length: 9\r\n\r\n`, "200 hello", {
    differs: { HAProxy: "passes them on; RFC 9110 6.5.1 forbids them" },
  }),
  says("no length, and the connection's end", ends(`${answerHead("")}hello`), "200 hello", { differs: OLD }),
  says("HTTP/1.0, and the connection's end", ends("HTTP/1.0 200 OK\r\nX-App: 1\r\n\r\nhello"), "200 hello", {
    differs: OLD,
  }),
  says("HTTP/1.0 with a length", ends(answer("hello").replace("1.1", "1.0")), "200 hello"),
  says("Connection: close", ends(answer("hello", "Connection: close\r\n")), "200 hello"),
  says("an end of the connection that was not announced", ends(answer("hello")), "200 hello"),
  says("chunks for HTTP/1.0 come without them", answerHead(CHUNKED) + chunk("hello") + LAST_CHUNK, "", {
    client: [`GET / HTTP/1.0\r\n${HOST}\r\n`],
    ours: { answers: ["200 hello"], seen: ["GET /"], after: "closed" },
  }),
  says("no reason", `HTTP/1.1 200\r\nX-App: 1\r\nContent-Length: 5\r\n\r\nhello`, "200 hello"),
  says("an empty reason", answer("hello", "", "200 "), "200 hello"),
  says("an unknown status", answer("hello", "", "299 Odd"), "299 hello"),
  says("a status beyond 599", answer("hello", "", "799 Odd"), "799 hello"),
  says("a field of 8 KB", answer("", `X-A: ${"a".repeat(8000)}\r\n`), "", {
    look: ["x-a"],
    ours: fine("GET /", `200 {x-a: ${shown("a".repeat(8000))}}`),
    differs: { nginx: "reads no more than 4 KB of an answer's head unless told; apps set large cookies" },
  }),
  says("Set-Cookie keeps its order", answer("", "Set-Cookie: b=1\r\nSet-Cookie: a=2\r\nSet-Cookie: b=3\r\n"), "", {
    look: ["set-cookie"],
    ours: fine("GET /", "200 {set-cookie: b=1; set-cookie: a=2; set-cookie: b=3}"),
  }),
  says("fields of one hop", answer("", "Connection: X-Foo\r\nX-Foo: 1\r\nX-Bar: 2\r\nKeep-Alive: timeout=9\r\n"), "", {
    look: ["x-foo", "x-bar", "keep-alive"],
    ours: fine("GET /", "200 {x-bar: 2}"),
    differs: both("passes on what Connection names; RFC 9110 7.6.1 wants it removed"),
  }),
  bodiless("HEAD", "200 OK", "Content-Length: 5\r\n", "200 {content-length: 5}"),
  bodiless("HEAD", "200 OK", CHUNKED, "200"),
  bodiless("HEAD", "200 OK", "", "200"),
  bodiless("GET", "204 No Content", "", "204"),
  bodiless("GET", "204 No Content", "Content-Length: 5\r\n", "204", {
    differs: { nginx: "passes the length on; 204 has none (RFC 9110 8.6)" },
  }),
  bodiless("GET", "204 No Content", CHUNKED, "204"),
  bodiless("GET", "304 Not Modified", "Content-Length: 5\r\n", "304 {content-length: 5}"),
  bodiless("GET", "304 Not Modified", CHUNKED, "304"),
  bodiless("GET", "205 Reset Content", "Content-Length: 0\r\n", "205 {content-length: 0}"),
  bodiless("HEAD", "404 Not Found", "Content-Length: 5\r\n", "404 {content-length: 5}"),
  says("426 tells what the app would like", answer("", "Connection: Upgrade\r\nUpgrade: echo\r\n", "426 Odd"), "", {
    look: ["upgrade"],
    ours: fine("GET /", "426 {upgrade: echo}"),
  }),
];
