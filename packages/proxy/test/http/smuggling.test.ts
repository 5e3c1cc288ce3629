/** Messages that two readers could understand differently are refused, and nothing of them is passed on. */
import { describe, expect, test } from "vitest";
import { httpApp, parsed, rawApp, received, rig } from "./helpers.ts";

const POST = "POST / HTTP/1.1\r\nHost: a.test\r\n";
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;

/** What is sent; the proxy must answer 400, close, and the app must see no whole request. */
const TRIES: [string, string][] = [
  ["length and chunked", `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ["chunked and length", `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`],
  ["two lengths", `${POST}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`],
  ["the same length twice", `${POST}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd`],
  ["a list of lengths", `${POST}Content-Length: 4, 4\r\n\r\nabcd`],
  ["a length with a sign", `${POST}Content-Length: +4\r\n\r\nabcd`],
  ["a negative length", `${POST}Content-Length: -1\r\n\r\n`],
  ["a hexadecimal length", `${POST}Content-Length: 0x4\r\n\r\nabcd`],
  ["a length with a fraction", `${POST}Content-Length: 4.0\r\n\r\nabcd`],
  ["an empty length", `${POST}Content-Length: \r\n\r\n`],
  ["a length beyond counting", `${POST}Content-Length: 99999999999999999999\r\n\r\n`],
  ["a length with an underscore", `${POST}Content_Length: 4\r\n\r\nabcd`],
  ["chunked with an underscore", `${POST}Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ["chunked twice", `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ["chunked twice in a list", `${POST}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`],
  ["gzip and chunked", `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ["identity", `${POST}Transfer-Encoding: identity\r\n\r\n`],
  ["chunked misspelt", `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
  ["chunked in quotes", `${POST}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n`],
  ["chunked with a parameter", `${POST}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n`],
  ["chunked behind a vertical tab", `${POST}Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n`],
  ["a name in odd capitals, and a length", `${POST}tRANSFER-eNCODING: chunked\r\ncONTENT-lENGTH: 3\r\n\r\n0\r\n\r\n`],
  ["HTTP/1.0 and chunked", "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["a folded line", `${POST}X-A: b\r\n c\r\n\r\n`],
  ["a folded length", `${POST}Content-Length:\r\n 4\r\n\r\nabcd`],
  ["a folded first line", "GET / HTTP/1.1\r\n Host: a.test\r\n\r\n"],
  ["a bare LF behind the request line", "GET / HTTP/1.1\nHost: a.test\r\n\r\n"],
  ["bare LFs only", "GET / HTTP/1.1\nHost: a.test\n\n"],
  ["a bare LF in a value", `${POST}X-A: b\nTransfer-Encoding: chunked\r\n\r\n`],
  ["a bare CR in a value", `${POST}X-A: b\rContent-Length: 4\r\n\r\n`],
  ["a bare CR before the end", `${POST}X-A: b\r\r\n\r\n`],
  ["a NUL in a value", `${POST}X-A: b\0c\r\n\r\n`],
  ["a NUL in a name", `${POST}X-\0A: b\r\n\r\n`],
  ["a NUL in the target", "GET /\0 HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["a DEL in a value", `${POST}X-A: \x7f\r\n\r\n`],
  ["a blank before the colon", `${POST}Content-Length : 4\r\n\r\nabcd`],
  ["a tab before the colon", `${POST}Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n`],
  ["a blank in a name", `${POST}X A: b\r\n\r\n`],
  ["an empty name", `${POST}: b\r\n\r\n`],
  ["a line without a colon", `${POST}Host a.test\r\n\r\n`],
  ["a name in brackets", `${POST}X(A): b\r\n\r\n`],
  ["a name in latin1", `${POST}X\xe9: b\r\n\r\n`],
  ["no Host", "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n"],
  ["no Host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n"],
  ["two Hosts", "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n"],
  ["an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"],
  ["a list of Hosts", "GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n"],
  ["a Host with a path", "GET / HTTP/1.1\r\nHost: a.test/b\r\n\r\n"],
  ["a Host with a user", "GET / HTTP/1.1\r\nHost: b@a.test\r\n\r\n"],
  ["a Host with an odd port", "GET / HTTP/1.1\r\nHost: a.test:99999\r\n\r\n"],
  ["an absolute target without a host", "GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["an absolute target with a user", "GET http://u@b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["an absolute target and no Host", "GET http://b.test/ HTTP/1.1\r\n\r\n"],
  ["another scheme", "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["a target without a slash", "GET x HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["an asterisk for GET", "GET * HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["a fragment", "GET /#a HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["a blank in the target", "GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["two blanks", "GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["a tab instead of a blank", "GET\t/ HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["a blank behind the version", "GET / HTTP/1.1 \r\nHost: a.test\r\n\r\n"],
  ["no version", "GET /\r\nHost: a.test\r\n\r\n"],
  ["a version in small letters", "GET / http/1.1\r\nHost: a.test\r\n\r\n"],
  ["a method that is not a token", "GE(T / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["a blank before the method", " GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  ["empty lines without an end", "\r\n\r\n\r\n\r\n\r\n\r\n\r\n"],
  ["no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ["a chunk's size with a sign", `${CHUNKED}+3\r\nabc\r\n0\r\n\r\n`],
  ["a negative chunk", `${CHUNKED}-3\r\nabc\r\n0\r\n\r\n`],
  ["a chunk's size with 0x", `${CHUNKED}0x3\r\nabc\r\n0\r\n\r\n`],
  ["a chunk's size that overflows", `${CHUNKED}10000000000000003\r\nabc\r\n0\r\n\r\n`],
  ["a chunk's size behind many zeros", `${CHUNKED}0000000000003\r\nabc\r\n0\r\n\r\n`],
  ["a chunk's size behind a blank", `${CHUNKED} 3\r\nabc\r\n0\r\n\r\n`],
  ["a blank behind a chunk's size", `${CHUNKED}3 \r\nabc\r\n0\r\n\r\n`],
  ["a chunk without a size", `${CHUNKED}\r\nabc\r\n0\r\n\r\n`],
  ["an underscore in a chunk's size", `${CHUNKED}1_0\r\nabc\r\n0\r\n\r\n`],
  ["a chunk's size ended by LF", `${CHUNKED}3\nabc\r\n0\r\n\r\n`],
  ["a chunk's size ended by CR", `${CHUNKED}3\rabc\r\n0\r\n\r\n`],
  ["a chunk without its CR LF", `${CHUNKED}3\r\nabc0\r\n\r\n`],
  ["a chunk ended by LF", `${CHUNKED}3\r\nabc\n0\r\n\r\n`],
  ["a chunk longer than its size", `${CHUNKED}3\r\nabcd\r\n0\r\n\r\n`],
  ["a LF in a chunk's extension", `${CHUNKED}3;a\nb\r\nabc\r\n0\r\n\r\n`],
  ["a last chunk ended by LF", `${CHUNKED}0\n\n`],
  ["a trailer with a blank in its name", `${CHUNKED}0\r\nA B: c\r\n\r\n`],
  ["a folded trailer", `${CHUNKED}0\r\nA: b\r\n c\r\n\r\n`],
];

describe("requests", () => {
  test.each(TRIES)("%s: 400", async (_name, bytes) => {
    let served = 0;
    const app = await httpApp((request, response) => {
      request.on("end", () => {
        served += 1;
        response.end();
      });
      request.on("error", () => {}).resume();
    });
    const { ask, log } = await rig({ app });
    const { status, headers, body } = parsed(await ask(bytes));
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ error: "bad_request", request_id: headers.get("hibernaut-request-id") });
    expect(headers.get("connection")).toBe("close");
    expect(served).toBe(0);
    expect(log).toMatchObject([{ status: 400, error: "bad_request" }]);
  });

  test.each([
    [431, `GET / HTTP/1.1\r\nHost: a.test\r\nX: ${"a".repeat(33_000)}\r\n\r\n`],
    [431, `GET / HTTP/1.1\r\nHost: a.test\r\n${"X: a\r\n".repeat(100)}\r\n`],
    [431, `${CHUNKED}3;${"a".repeat(300)}\r\nabc\r\n0\r\n\r\n`],
    [431, `${CHUNKED}0\r\n${"X: a\r\n".repeat(101)}\r\n`],
    [414, `GET /${"a".repeat(33_000)} HTTP/1.1\r\nHost: a.test\r\n\r\n`],
    [505, "GET / HTTP/2.0\r\nHost: a.test\r\n\r\n"],
    [505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    [405, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"],
  ])("%d for what is too large, or not served", async (status, bytes) => {
    const { ask } = await rig({ app: await httpApp((request) => request.on("error", () => {}).resume()) });
    expect(parsed(await ask(bytes)).status).toBe(status);
  });

  test("a second request in a body stays in the body", async () => {
    const inner = "GET /admin HTTP/1.1\r\nHost: a.test\r\n\r\n";
    const urls: (string | undefined)[] = [];
    const app = await httpApp((request, response) => {
      urls.push(request.url);
      request.resume().on("end", () => response.end("done"));
    });
    const { ask } = await rig({ app });
    const reply = await ask(`${POST}Connection: close\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`);
    expect(parsed(reply).body).toBe("done");
    expect(urls).toEqual(["/"]);
  });

  test("in an absolute target the host of the target counts", async () => {
    const app = await httpApp((request, response) => response.end(`${request.headers.host} ${request.url}`));
    const { ask, heads } = await rig({ app });
    const reply = await ask("GET http://B.test:81?x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    expect(parsed(reply).body).toBe("B.test:81 /?x");
    expect(heads[0]).toMatchObject({ host: "b.test", target: "/?x" });
  });
});

const HEAD = "HTTP/1.1 200 OK\r\n";
const RESPONSES: [string, string][] = [
  ["length and chunked", `${HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ["two lengths", `${HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc`],
  ["a list of lengths", `${HEAD}Content-Length: 2, 2\r\n\r\nab`],
  ["gzip and chunked", `${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ["HTTP/1.0 and chunked", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["a folded line", `${HEAD}A: b\r\n c\r\n\r\n`],
  ["a bare LF", `${HEAD}A: b\nC: d\r\n\r\n`],
  ["a bare CR", `${HEAD}A: b\rC: d\r\n\r\n`],
  ["a NUL", `${HEAD}A: \0\r\n\r\n`],
  ["a blank before the colon", `${HEAD}Content-Length : 2\r\n\r\nab`],
  ["no status", "HTTP/1.1 OK\r\n\r\n"],
  ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n"],
  ["another protocol", "ICY 200 OK\r\n\r\n"],
  ["HTTP/2", "HTTP/2 200 OK\r\n\r\n"],
  ["an empty line", "\r\nHTTP/1.1 200 OK\r\n\r\n"],
  ["a 101 that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"],
  ["interim responses without an end", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(101)],
  ["too large a head", `${HEAD}A: ${"a".repeat(33_000)}\r\n\r\n`],
  ["too many fields", `${HEAD}${"A: b\r\n".repeat(101)}\r\n`],
];

describe("responses", () => {
  test.each(RESPONSES)("%s: 502", async (_name, bytes) => {
    const app = await rawApp((socket) => received(socket, (text) => text.includes("\r\n\r\n") && socket.write(bytes)));
    const { ask, outcomes } = await rig({ app });
    const text = await ask("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    const final = text.slice(text.indexOf("HTTP/1.1 502"));
    expect(JSON.parse(parsed(final).body)).toMatchObject({ error: "upstream_invalid" });
    expect(outcomes).toEqual([{ status: 502, error: "upstream_invalid" }]);
  });

  test("bytes after a response never become another client's response", async () => {
    const app = await rawApp((socket, number) =>
      received(socket, (text) => {
        if (!text.endsWith("\r\n\r\n")) return;
        const body = `answer ${number}`;
        socket.write(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}${HEAD}Content-Length: 4\r\n\r\nevil`);
      }),
    );
    const { client } = await rig({ app });
    const browser = await client();
    await browser.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").sees("answer 1");
    await browser.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").sees("answer 2");
    expect(browser.text).not.toContain("evil");
  });
});
