/** Messages to begin with: ordinary ones, and each of the usual tricks. Mutations make others of them. */

/** Lines of a head that the tricks of request smuggling are made of. */
const LINES = [
  "Content-Length: 4",
  "Content-Length: 5",
  "Content-Length: 0",
  "Content-Length: 4, 4",
  "Content-Length: +4",
  "Content-Length: -1",
  "Content-Length: 0x4",
  "Content-Length: 4.0",
  "Content-Length: ",
  "Content-Length: 0000000000000000004",
  "Content-Length: 99999999999999999999",
  "Content-Length : 4",
  "Content-Length:\r\n 4",
  "Content_Length: 4",
  "cONTENT-lENGTH:4",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: CHUNKED",
  "Transfer-Encoding: chunked, chunked",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: chunked, gzip",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: xchunked",
  'Transfer-Encoding: "chunked"',
  "Transfer-Encoding: chunked;q=1",
  "Transfer-Encoding: \vchunked",
  "Transfer-Encoding: chunked ",
  "Transfer-Encoding:",
  "Transfer-Encoding\t: chunked",
  "Transfer_Encoding: chunked",
  "tRANSFER-eNCODING: chunked",
  "Host: a.test",
  "Host: a.test, b.test",
  "Host: a.test/b",
  "Host: b@a.test",
  "Host: [::1]:81",
  "Host:",
  "Connection: close",
  "Connection: keep-alive",
  "Connection: Keep-Alive, Upgrade",
  "Connection: close, keep-alive",
  "Connection: x,,close\t,y",
  "Connection: upgrade\r\nUpgrade: websocket",
  "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
  "X-A: b\r\n c",
  "X-A: b\nX-B: c",
  "X-A: b\rX-B: c",
  "X-A: b\r",
  "X-A: \0",
  "X-A: \x7f",
  "X-A: \t\x80 \xff ",
  "X A: b",
  ": b",
  "X-A",
  "X(A): b",
  "X\xe9: b",
  " X-A: b",
];

/** Request lines and status lines. */
const REQUEST_LINES = [
  "GET / HTTP/1.1",
  "GET /a?b=%20c HTTP/1.0",
  "GET http://b.test:81?x HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "BREW /pot HTTP/1.1",
  "CONNECT a.test:443 HTTP/1.1",
  "GET / HTTP/2.0",
  "GET  / HTTP/1.1",
  "GET\t/ HTTP/1.1",
  "GET /a b HTTP/1.1",
  "GET /#a HTTP/1.1",
  "GET /\xe9 HTTP/1.1",
  "GET * HTTP/1.1",
  "GET /",
  "PRI * HTTP/2.0",
];
const STATUS_LINES = [
  "HTTP/1.1 200 OK",
  "HTTP/1.0 200 OK",
  "HTTP/1.1 200",
  "HTTP/1.1 204 ",
  "HTTP/1.1 304 Not Modified",
  "HTTP/1.1 103 Early Hints",
  "HTTP/1.1 199 Own",
  "HTTP/1.1 101 Switching Protocols",
  "HTTP/1.1 20 OK",
  "HTTP/1.1 099 \xe9",
  "HTTP/2 200 OK",
  "ICY 200 OK",
];

/** Chunked bodies. */
const CHUNKED_BODIES = [
  "3\r\nabc\r\n0\r\n\r\n",
  "A;name=value;flag\r\n0123456789\r\n000\r\nChecksum: 1\r\n\r\n",
  '3;a="\\"b;c"\r\nabc\r\n0\r\n\r\n',
  "3;a=\r\nabc\r\n0;;\r\n\r\n",
  "3 \r\nabc\r\n0\r\n\r\n",
  "3\nabc\r\n0\n\n",
  "3\r\nabcd\r\n0\r\n\r\n",
  "0000000000003\r\nabc\r\n0\r\n\r\n",
  "10000000000000003\r\nabc\r\n0\r\n\r\n",
  "0x3\r\nabc\r\n0\r\n\r\n",
  "0\r\nContent-Length: 4\r\n\r\n",
  "0\r\nA: b\r\n c\r\n\r\n",
];

const POST = "POST / HTTP/1.1\r\nHost: a.test\r\n";
const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n";
/** A second message, which must begin where the first one ends. */
const NEXT = "GET /next HTTP/1.1\r\nHost: a.test\r\n\r\n";

export const REQUESTS: readonly string[] = [
  `${POST}\r\n${NEXT}`,
  `${POST}Content-Length: 4\r\n\r\nabcd${NEXT}`,
  `GET / HTTP/1.1\r\n\r\n`,
  `\r\n\r\n${NEXT}`,
  `${POST}${"X-A: b\r\n".repeat(12)}\r\n`,
  ...REQUEST_LINES.map((line) => `${line}\r\nHost: a.test\r\n\r\n${NEXT}`),
  ...LINES.flatMap((line) => [
    `${POST}${line}\r\n\r\nabcd${NEXT}`,
    `${POST}Content-Length: 4\r\n${line}\r\n\r\nabcd${NEXT}`,
    `${POST}${CHUNKED}${line}\r\n\r\n0\r\n\r\n${NEXT}`,
    `POST / HTTP/1.0\r\nHost: a.test\r\n${line}\r\n\r\n${NEXT}`,
  ]),
  ...CHUNKED_BODIES.map((body) => `${POST}${CHUNKED}\r\n${body}${NEXT}`),
];

export const RESPONSES: readonly string[] = [
  `HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 4\r\n\r\nabcd`,
  `${OK}\r\nuntil the end`,
  ...STATUS_LINES.flatMap((line) => [
    `${line}\r\n\r\nabcd`,
    `${line}\r\nContent-Length: 4\r\n\r\nabcd${OK}\r\n`,
    `${line}\r\n${CHUNKED}\r\n0\r\n\r\n`,
  ]),
  ...LINES.flatMap((line) => [
    `${OK}${line}\r\n\r\nabcd`,
    `${OK}Content-Length: 4\r\n${line}\r\n\r\nabcd`,
    `${OK}${CHUNKED}${line}\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  ]),
  ...CHUNKED_BODIES.map((body) => `${OK}${CHUNKED}\r\n${body}`),
];
