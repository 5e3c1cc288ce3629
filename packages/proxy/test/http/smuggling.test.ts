/**
 * Messages that two readers could understand differently are refused, and nothing of them is passed on: how the refusal
 * looks, and what the tables of the conformance suite, which has nginx and HAProxy for comparison, do not have.
 */
import { describe, expect, test } from "vitest";
import { headApp, httpApp, parsed, rig } from "./helpers.ts";

const POST = "POST / HTTP/1.1\r\nHost: a.test\r\n";
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;

describe("requests", () => {
  test.each([
    ["length and chunked", `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a folded length", `${POST}Content-Length:\r\n 4\r\n\r\nabcd`],
    ["a bare CR before the end", `${POST}X-A: b\r\r\n\r\n`],
    ["a DEL in a value", `${POST}X-A: \x7f\r\n\r\n`],
    ["a tab before the colon", `${POST}Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n`],
    ["empty lines without an end", "\r\n\r\n\r\n\r\n\r\n\r\n"],
    ["a chunk longer than its size", `${CHUNKED}3\r\nabcd\r\n0\r\n\r\n`],
    ["a trailer with a blank in its name", `${CHUNKED}0\r\nA B: c\r\n\r\n`],
  ])("%s: 400", async (_name, bytes) => {
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
    [431, `GET / HTTP/1.1\r\nHost: a.test\r\n${"X: a\r\n".repeat(100)}\r\n`],
    [431, `${CHUNKED}3;${"a".repeat(300)}\r\nabc\r\n0\r\n\r\n`],
    [431, `${CHUNKED}0\r\n${"X: a\r\n".repeat(101)}\r\n`],
    [505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ])("%d for what is too large, or not served", async (status, bytes) => {
    const { ask } = await rig({ app: await httpApp((request) => request.on("error", () => {}).resume()) });
    expect(parsed(await ask(bytes)).status).toBe(status);
  });
});

describe("responses", () => {
  const HEAD = "HTTP/1.1 200 OK\r\n";

  test.each([
    ["length and chunked", `${HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a list of lengths", `${HEAD}Content-Length: 2, 2\r\n\r\nab`],
    ["a bare CR", `${HEAD}A: b\rC: d\r\n\r\n`],
    ["an empty line", "\r\nHTTP/1.1 200 OK\r\n\r\n"],
    ["interim responses without an end", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(101)],
    ["too many fields", `${HEAD}${"A: b\r\n".repeat(101)}\r\n`],
  ])("%s: 502", async (_name, bytes) => {
    const app = await headApp((socket) => socket.write(bytes));
    const { ask, outcomes } = await rig({ app });
    const text = await ask("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    const final = text.slice(text.indexOf("HTTP/1.1 502"));
    expect(JSON.parse(parsed(final).body)).toMatchObject({ error: "upstream_invalid" });
    expect(outcomes).toEqual([{ status: 502, error: "upstream_invalid" }]);
  });
});
