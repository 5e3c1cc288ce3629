/** Who says where a body ends: Content-Length, Transfer-Encoding, and both in disagreement (RFC 9112 6). */
import { both, type Case, CLIENT_ENDS, chunk, fine, get, HOST, LAST_CHUNK, post, refused } from "../case.ts";

const SMUGGLED = get("/smuggled");

/** A POST whose fields frame the body in an odd way. A `/smuggled` at the app would be a request from within it. */
const odd = (name: string, fields: string, body: string, differs: Case["differs"] = {}): Case => ({
  name,
  client: [`POST / HTTP/1.1\r\n${HOST}${fields}\r\n${body}`],
  ours: refused(400),
  differs,
});

const TE_WINS = "goes by Transfer-Encoding and closes, which RFC 9112 6.1 allows as well as the refusal";
const FAULTY = "reads it and closes; RFC 9112 6.1 has its framing taken for faulty";
const ONE_LENGTH = "makes one length of equal ones, which RFC 9112 6.3 allows as well as the refusal";
/** RFC 9112 6.3: a request in which chunked is not the last coding gets 400. */
const NOT_LAST = { nginx: "says 501; RFC 9112 6.3 wants 400 where chunked is not the last coding" };
/** RFC 9112 6.1 advises 501 for codings that are not understood, before chunked. */
const UNKNOWN = {
  nginx: "says 501, as RFC 9112 6.1 advises; ours has one answer, 400, for all codings that it does not read",
  HAProxy: "says 422, which is about content (RFC 9110 15.5.21)",
};

const BOTH = `${LAST_CHUNK}${SMUGGLED}`;

export const FRAMING: readonly Case[] = [
  { name: "a length", client: [post("hello")], ours: fine("POST / hello") },
  { name: "a length of 0", client: [post("")], ours: fine("POST /") },
  {
    name: "a length with zeros before it",
    client: [`POST / HTTP/1.1\r\n${HOST}Content-Length: 005\r\n\r\nhello`],
    ours: fine("POST / hello"),
  },
  {
    name: "a length between blanks and tabs",
    client: [`POST / HTTP/1.1\r\n${HOST}Content-Length: \t 5\t \r\n\r\nhello`],
    ours: fine("POST / hello"),
    differs: { nginx: "takes tabs for a part of the value; around it they mean nothing (RFC 9110 5.5)" },
  },
  {
    name: "a body split at every byte",
    client: [{ slowly: post("hello") }],
    ours: fine("POST / hello"),
  },
  {
    name: "GET with a body",
    client: [`GET / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`],
    ours: fine("GET / hello"),
  },
  {
    name: "a request in a body stays there",
    client: [post("GET /smuggled HTTP/1.1\r\n\r\n")],
    ours: fine("POST / GET /smuggled HTTP/1.1\\r\\n\\r\\n"),
  },
  {
    name: "POST without any framing has no body",
    client: [`POST / HTTP/1.1\r\n${HOST}\r\n${get("/second")}`],
    asks: ["POST", "GET"],
    ours: { answers: ["200 ok", "200 ok"], seen: ["POST /", "GET /second"], after: "open" },
  },
  {
    name: "a client that leaves in the middle of the length",
    client: [`POST / HTTP/1.1\r\n${HOST}Content-Length: 10\r\n\r\nhello`, CLIENT_ENDS],
    ours: { answers: [], seen: [], after: "closed" },
  },
  odd("CL.TE", `Content-Length: ${BOTH.length}\r\nTransfer-Encoding: chunked\r\n`, BOTH, { HAProxy: TE_WINS }),
  odd("TE.CL", `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n`, chunk(SMUGGLED) + LAST_CHUNK, {
    HAProxy: TE_WINS,
  }),
  odd("both in other spellings", "content-length: 5\r\nTRANSFER-ENCODING: chunked\r\n", BOTH, { HAProxy: TE_WINS }),
  odd("the same length twice", "Content-Length: 5\r\nContent-Length: 5\r\n", "hello", { HAProxy: ONE_LENGTH }),
  odd("two lengths", `Content-Length: 5\r\nContent-Length: ${5 + SMUGGLED.length}\r\n`, `hello${SMUGGLED}`),
  odd("the same length in a list", "Content-Length: 5, 5\r\n", "hello", { HAProxy: ONE_LENGTH }),
  odd("two lengths in a list", "Content-Length: 5, 6\r\n", "hello!"),
  odd("a length with a plus", "Content-Length: +5\r\n", "hello"),
  odd("a negative length", "Content-Length: -5\r\n", "hello"),
  odd("a length with 0x", "Content-Length: 0x5\r\n", "hello"),
  odd("a length with a blank in it", "Content-Length: 5 0\r\n", "hello"),
  odd("a length with a fraction", "Content-Length: 5.0\r\n", "hello"),
  odd("an empty length", "Content-Length:\r\n", ""),
  odd("a length beyond 64 bits", "Content-Length: 18446744073709551621\r\n", "hello"),
  odd("a length with an underscore", `Content_Length: 5\r\n`, get("/hidden"), {
    nginx: "drops the field and reads the body as a request; an app that takes it for a length smuggles",
    HAProxy: "passes the field on and reads the body as a request; an app that takes it for a length smuggles",
  }),
  odd("a coding that is nearly chunked", "Transfer-Encoding: xchunked\r\n", BOTH, NOT_LAST),
  odd("chunked, but not as the last coding", "Transfer-Encoding: chunked, identity\r\n", BOTH, NOT_LAST),
  odd("identity before chunked", "Transfer-Encoding: identity, chunked\r\n", LAST_CHUNK, UNKNOWN),
  odd("gzip before chunked", "Transfer-Encoding: gzip, chunked\r\n", LAST_CHUNK, UNKNOWN),
  odd("identity alone", "Transfer-Encoding: identity\r\n", "", NOT_LAST),
  odd("chunked twice in a list", "Transfer-Encoding: chunked, chunked\r\n", LAST_CHUNK, {
    nginx: "says 501, for a coding that it does know; it may be applied once only (RFC 9112 6.1)",
  }),
  odd("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", LAST_CHUNK),
  odd("chunked and another", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", BOTH),
  odd("chunked in quotes", 'Transfer-Encoding: "chunked"\r\n', LAST_CHUNK, NOT_LAST),
  odd("chunked with a parameter", "Transfer-Encoding: chunked;q=1\r\n", LAST_CHUNK, NOT_LAST),
  odd("chunked behind a vertical tab", "Transfer-Encoding: \vchunked\r\n", LAST_CHUNK, NOT_LAST),
  odd("chunked behind a comma", "Transfer-Encoding: ,chunked\r\n", LAST_CHUNK, UNKNOWN),
  odd("an empty coding", "Transfer-Encoding:\r\n", "", NOT_LAST),
  odd(
    "chunked with an underscore",
    "Transfer_Encoding: chunked\r\n",
    "",
    both("lets it pass or drops it; apps behind gateways that make variables of fields take it for the real one"),
  ),
  {
    name: "chunked in capitals",
    client: [`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: CHUNKED\r\n\r\n${chunk("hello")}${LAST_CHUNK}`],
    ours: fine("POST / hello"),
  },
  {
    name: "chunked in HTTP/1.0",
    client: [`POST / HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${chunk("hello")}${LAST_CHUNK}`],
    ours: refused(400),
    differs: { HAProxy: FAULTY },
  },
  {
    name: "chunked and a length in HTTP/1.0",
    client: [`POST / HTTP/1.0\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${LAST_CHUNK}`],
    ours: refused(400),
    differs: { HAProxy: FAULTY },
  },
];
