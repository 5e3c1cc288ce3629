/** What is said before the request, or its answer, is over: 100, 103, and early answers (RFC 9110 10.1.1, 15.2). */
import { ends } from "../acts.ts";
import { answer, type Case, CLIENT_ENDS, chunk, fine, get, HOST, LAST_CHUNK, OK } from "../case.ts";

const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
const HINTS = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";

/** nginx takes an interim answer for the final one, and reads on until the app ends the connection. */
const LAST = ends(answer("ok", "Connection: close\r\n"));
const FOR_FINAL = "takes an interim answer for the final one, and passes it on (RFC 9110 15.2)";
const SAYS_100 = "says 100 itself, and never asks the app (RFC 9110 10.1.1)";
const STAYS = "leaves the connection open for a body that a refused client need not send; ours says that it closes";

const expecting = (fields: string, version = "1.1") =>
  `POST / HTTP/${version}\r\n${HOST}Expect: 100-continue\r\n${fields}\r\n`;

export const INTERIM: readonly Case[] = [
  {
    name: "100 comes before the body is sent",
    client: [expecting("Content-Length: 5\r\n"), { sees: "100" }, "hello"],
    asks: ["POST"],
    atHead: CONTINUE,
    atEnd: LAST,
    ours: { answers: ["100", "200 ok"], seen: ["POST / hello"], after: "open" },
    differs: { nginx: SAYS_100 },
  },
  {
    name: "100 comes before a body in chunks",
    client: [expecting("Transfer-Encoding: chunked\r\n"), { sees: "100" }, chunk("hello") + LAST_CHUNK],
    asks: ["POST"],
    atHead: CONTINUE,
    atEnd: LAST,
    ours: { answers: ["100", "200 ok"], seen: ["POST / hello"], after: "open" },
    differs: { nginx: SAYS_100 },
  },
  {
    name: "the expectation is told the app",
    client: [expecting("Content-Length: 5\r\n"), { sees: "100" }, "hello"],
    asks: ["POST"],
    atHead: CONTINUE,
    atEnd: LAST,
    look: ["expect"],
    ours: { answers: ["100", "200 ok"], seen: ["POST / hello {expect: 100-continue}"], after: "open" },
    differs: { nginx: SAYS_100 },
  },
  {
    name: "417 instead of 100",
    client: [expecting("Content-Length: 5\r\n"), { sees: "417" }],
    asks: ["POST"],
    atHead: answer("no", "", "417 Expectation Failed"),
    ours: { answers: ["417 no"], seen: ["POST / [unread]"], after: "closed" },
    differs: { nginx: SAYS_100, HAProxy: STAYS },
  },
  {
    name: "401 instead of 100, from an app that closes",
    client: [expecting("Content-Length: 5\r\n"), { sees: "401" }],
    asks: ["POST"],
    atHead: ({ socket }) => void socket.end(answer("who?", "Connection: close\r\n", "401 Unauthorized")),
    ours: { answers: ["401 who?"], seen: ["POST / [unread]"], after: "closed" },
    differs: { nginx: SAYS_100, HAProxy: STAYS },
  },
  {
    name: "a client that does not wait for 100",
    client: [`${expecting("Content-Length: 5\r\n")}hello`],
    asks: ["POST"],
    atEnd: OK,
    ours: { answers: ["200 ok"], seen: ["POST / hello"], after: "open" },
    differs: { nginx: SAYS_100 },
  },
  {
    name: "an expectation that nobody knows",
    client: [`POST / HTTP/1.1\r\n${HOST}Expect: tea\r\nContent-Length: 5\r\n\r\nhello`],
    asks: ["POST"],
    look: ["expect"],
    ours: fine("POST / hello {expect: tea}"),
    differs: { nginx: "drops Expect; the app may know what it means (RFC 9110 10.1.1)" },
  },
  {
    name: "an expectation in HTTP/1.0 has no 100",
    client: [`${expecting("Content-Length: 5\r\n", "1.0")}hello`],
    asks: ["POST"],
    atHead: CONTINUE,
    atEnd: LAST,
    ours: { answers: ["200 ok"], seen: ["POST / hello"], after: "closed" },
    differs: { nginx: FOR_FINAL, HAProxy: "passes it on to HTTP/1.0, which knows none (RFC 9110 15.2)" },
  },
  {
    name: "100 that nobody expects",
    client: [get()],
    atHead: CONTINUE,
    atEnd: LAST,
    ours: { answers: ["100", "200 ok"], seen: ["GET /"], after: "open" },
  },
  {
    name: "103 with its fields",
    client: [get()],
    atHead: HINTS,
    atEnd: LAST,
    look: ["link"],
    ours: { answers: ["103 {link: </a.css>}", "200 ok"], seen: ["GET /"], after: "open" },
  },
  {
    name: "several interim answers",
    client: [get()],
    atHead: CONTINUE + HINTS + HINTS,
    atEnd: LAST,
    ours: { answers: ["100", "103", "103", "200 ok"], seen: ["GET /"], after: "open" },
  },
  {
    name: "103 is not for HTTP/1.0",
    client: [`GET / HTTP/1.0\r\n${HOST}\r\n`],
    atHead: HINTS,
    atEnd: LAST,
    ours: { answers: ["200 ok"], seen: ["GET /"], after: "closed" },
    differs: { nginx: FOR_FINAL, HAProxy: "passes it on to HTTP/1.0, which knows none (RFC 9110 15.2)" },
  },
  {
    name: "an answer before the body is whole",
    client: [`POST / HTTP/1.1\r\n${HOST}Content-Length: 1000\r\n\r\nhello`, { sees: "enough" }, CLIENT_ENDS],
    asks: ["POST"],
    atHead: answer("enough", "", "413 Too Large"),
    ours: { answers: ["413 enough"], seen: ["POST / [unread]"], after: "closed" },
  },
  {
    name: "an answer before the body is whole, which then comes",
    client: [`POST / HTTP/1.1\r\n${HOST}Content-Length: 10\r\n\r\nhello`, { sees: "ok" }, "world"],
    asks: ["POST"],
    atHead: OK,
    ours: { answers: ["200 ok"], seen: ["POST / [unread]"], after: "closed" },
    differs: { HAProxy: "reads the rest and keeps the connection; RFC 9112 9.3 allows to close it instead" },
  },
  {
    name: "an answer before the last chunk, and a large body behind it",
    client: [
      `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${chunk("hello")}`,
      { sees: "enough" },
      chunk("x".repeat(50_000)).repeat(4),
    ],
    asks: ["POST"],
    atHead: ({ socket }) => void socket.end(answer("enough", "Connection: close\r\n", "413 Too Large")),
    ours: { answers: ["413 enough"], seen: ["POST / [unread]"], after: "closed" },
  },
];
