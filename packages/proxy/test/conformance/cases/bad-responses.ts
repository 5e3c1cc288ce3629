/** Apps that break off, lie about their length, or do not speak HTTP (RFC 9112 5, 6.3, 8). */
import { ends, sends, sendsBoth } from "../acts.ts";
import {
  APP_TOLD,
  answer,
  answerHead,
  both,
  type Case,
  chunk,
  fine,
  get,
  HOST,
  LAST_CHUNK,
  type Outcome,
} from "../case.ts";

/** What the app answers to one GET, and then ends the connection; nginx would read on. */
const bad = (name: string, text: string, more: Partial<Case> = {}): Case => ({
  name,
  client: [get()],
  atEnd: ends(text),
  ours: fine("GET /", "refused 502"),
  ...more,
});

const CUT: Outcome = { answers: ["200 hello [cut]"], seen: ["GET /"], after: "closed" };

/** What breaks off when the client has had a part of it. */
const broken = (name: string, atEnd: Case["atEnd"], more: Partial<Case> = {}): Case => ({
  name,
  client: [get(), { sees: "hello" }, APP_TOLD],
  ...(atEnd !== undefined && { atEnd }),
  ours: CUT,
  ...more,
});

const CHUNKED = "Transfer-Encoding: chunked\r\n";
const TEN = "Content-Length: 10\r\n";
/** What does not begin with a status line. The client closes, as nginx does not tell it where such an answer ends. */
const OLDEST: Partial<Case> = {
  client: [get("/", "Connection: close\r\n")],
  ours: { answers: ["refused 502"], seen: ["GET /"], after: "closed" },
  differs: { nginx: "takes it for HTTP/0.9 and passes it on bare; RFC 9112 4 has a status line" },
};
const ONCE = both("gives up; ours asks again, as RFC 9110 9.2.2 allows for GET, since another machine may answer");

export const BAD_RESPONSES: readonly Case[] = [
  broken("less than its length, and the end", sends(`${answerHead(TEN)}hello`, "end")),
  broken("less than its length, and a reset", sends(`${answerHead(TEN)}hello`, "reset")),
  broken("chunks without the last, and the end", sends(answerHead(CHUNKED) + chunk("hello"), "end")),
  broken("chunks without the last, and a reset", sends(answerHead(CHUNKED) + chunk("hello"), "reset")),
  broken("the end in the middle of a chunk", sends(`${answerHead(CHUNKED)}9\r\nhello`, "end")),
  broken("a malformed chunk behind a good one", sendsBoth(answerHead(CHUNKED) + chunk("hello"), `0x1\r\na\r\n`)),
  broken("a reset of a body without length", sends(`${answerHead("")}hello`, "reset"), {
    differs: { HAProxy: "ends it in order, as if it were whole; RFC 9112 8 has it known for incomplete" },
  }),
  broken("half of the length for HTTP/1.0", sends(`${answerHead(TEN)}hello`, "end"), {
    client: [`GET / HTTP/1.0\r\n${HOST}\r\n`, { sees: "hello" }, APP_TOLD],
  }),
  broken("half of the chunks for HTTP/1.0", sends(answerHead(CHUNKED) + chunk("hello"), "end"), {
    differs: { nginx: "ends it in order, as if it were whole; RFC 9112 8 has it known for incomplete" },
    client: [`GET / HTTP/1.0\r\n${HOST}\r\n`, { sees: "hello" }, APP_TOLD],
  }),
  bad("more than its length is nobody's answer", `${answer("hello")}${answer("evil")}`, {
    atEnd: `${answer("hello")}${answer("evil")}`,
    ours: fine("GET /", "200 hello"),
  }),
  bad("a body behind 204 is nobody's answer", "", {
    atEnd: `${answerHead("", "204 No Content")}${answer("evil")}`,
    ours: fine("GET /", "204"),
  }),
  bad("a body behind an answer to HEAD is nobody's answer", "", {
    client: [`HEAD / HTTP/1.1\r\n${HOST}\r\n`],
    asks: ["HEAD"],
    atEnd: answer("hello"),
    ours: fine("HEAD /", "200"),
  }),
  bad("an answer to nobody on a kept connection", "", {
    client: [get("/1"), { sees: "ok" }, APP_TOLD, get("/2")],
    asks: ["GET", "GET"],
    atEnd: sendsBoth(answer("ok"), answer("evil")),
    ours: { answers: ["200 ok", "200 ok"], seen: ["GET /1", "GET /2"], after: "open" },
  }),
  bad("the end before an answer", "", {
    ours: { answers: ["refused 502"], seen: ["GET /", "GET /", "GET /"], after: "open" },
    differs: ONCE,
  }),
  bad("the end before an answer to HEAD", "", {
    client: [`HEAD / HTTP/1.1\r\n${HOST}\r\n`],
    asks: ["HEAD"],
    ours: { answers: ["refused 502"], seen: ["HEAD /", "HEAD /", "HEAD /"], after: "open" },
    differs: ONCE,
  }),
  bad("the end in the middle of a head", "HTTP/1.1 200 OK\r\nX-App: 1\r\n"),
  bad("garbage", "garbage\r\n\r\n", OLDEST),
  bad("another protocol", "ICY 200 OK\r\n\r\n", OLDEST),
  bad("HTTP/2 as version", "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n", OLDEST),
  bad("a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", {
    ...OLDEST,
    differs: both("passes it on; a status has three digits (RFC 9112 4)"),
  }),
  bad("a status that is a word", "HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n", OLDEST),
  bad("101 that nobody asked for", "HTTP/1.1 101 Odd\r\nX-App: 1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", {
    differs: { nginx: "makes a tunnel of it; RFC 9110 15.2.2 has 101 for those who asked" },
  }),
  bad("a length and chunked", `${answerHead(`Content-Length: 5\r\n${CHUNKED}`)}${chunk("hello")}${LAST_CHUNK}`, {
    differs: both("goes by Transfer-Encoding; RFC 9112 6.3 would rather have it handled as an error"),
  }),
  bad("two lengths", `${answerHead("Content-Length: 5\r\nContent-Length: 6\r\n")}hello!`, {
    differs: { nginx: "takes the last one; RFC 9112 6.3 wants 502" },
  }),
  bad("the same length twice", `${answerHead("Content-Length: 5\r\nContent-Length: 5\r\n")}hello`, {
    differs: both("makes one of them, which RFC 9112 6.3 allows as well as the refusal"),
  }),
  bad("a negative length", `${answerHead("Content-Length: -5\r\n")}hello`, {
    differs: { nginx: "takes it for no length; RFC 9112 6.3 wants 502" },
  }),
  bad("gzip and chunked", `${answerHead("Transfer-Encoding: gzip, chunked\r\n")}${LAST_CHUNK}`, {
    differs: { nginx: "takes the body for plain; the client would be given gzip unawares (RFC 9112 6.1)" },
  }),
  bad("chunked in HTTP/1.0", `${answerHead(CHUNKED).replace("1.1", "1.0")}${chunk("hello")}${LAST_CHUNK}`, {
    differs: both("reads it; RFC 9112 6.1 has its framing taken for faulty"),
  }),
  bad("a folded line", answer("", "X-A: 1\r\n 2\r\n"), {
    differs: { HAProxy: "unfolds, which RFC 9112 5.2 allows as well as 502" },
  }),
  bad("a line ended by LF", answer("", "X-A: 1\nX-B: 2\r\n"), {
    differs: both("takes LF for the end of a line, as RFC 9112 2.2 allows; the next recipient may not"),
  }),
  bad("a NUL in a value", answer("", "X-A: 1\x002\r\n"), {
    differs: { HAProxy: "passes it on; RFC 9110 5.5 calls it invalid and dangerous" },
  }),
  bad("a blank before the colon", answer("", "X-A : 1\r\n")),
  bad("an empty name", answer("", ": 1\r\n")),
  bad("a head of 100 KB", answer("", `X-A: ${"a".repeat(100_000)}\r\n`)),
];
