/** The HTTP server as strangers try it, over the platform's real API on a fake host. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { HibernautClient } from "@hibernaut/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startApi, type TestApi } from "../../api/test/helpers.ts";
import { serveHttp } from "../src/index.ts";

let platform: TestApi;
let server: Awaited<ReturnType<typeof serveHttp>>;
const faults: unknown[] = [];
beforeAll(async () => {
  platform = await startApi();
  server = await serveHttp({
    at: { host: "127.0.0.1", port: 0 },
    ...{ outputBytes: 1000, version: "1" },
    clientOf: (token) => new HibernautClient({ apiUrl: platform.url, token }),
    onFault: (error) => faults.push(error),
  });
});
afterAll(async () => {
  await server.close();
  await platform.close();
});

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

async function send(
  body: string,
  headers: Record<string, string> = {},
  { method = "POST", path = "/mcp" } = {},
): Promise<{ status: number; session: string | undefined; body: string }> {
  const sent = request(new URL(path, server.url), {
    method,
    headers: {
      authorization: `Bearer ${platform.token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers,
    },
  });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const session = response.headers["mcp-session-id"];
  return { status: response.statusCode ?? 0, session: session as string | undefined, body: await text(response) };
}

const begin = JSON.stringify(INITIALIZE);
const list = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/list" });

test("a token that the platform does not know begins nothing, and another token's session does not exist", async () => {
  expect(await send(begin, { authorization: "Bearer wrong" })).toMatchObject({ status: 401, session: undefined });
  const { status, session = "" } = await send(begin);
  expect(status).toBe(200);
  const mine = { "mcp-session-id": session };
  expect((await send(list, mine)).body).toContain("create_sandbox");
  const { token } = await new HibernautClient({ apiUrl: platform.url, token: platform.token }).createToken("other", {});
  expect(await send(list, { ...mine, authorization: `Bearer ${token}` })).toMatchObject({ status: 404 });
  expect(await send("", mine, { method: "DELETE" })).toMatchObject({ status: 200 });
  expect(await send(list, mine)).toMatchObject({ status: 404 });
});

test.each([
  ["what is not JSON", "{", {}, {}, 400],
  ["what is not a message", "[1]", {}, {}, 400],
  ["a call without a session", list, {}, {}, 400],
  ["a stream without a session", "", {}, { method: "GET" }, 400],
  ["a session of its own making", list, { "mcp-session-id": "x" }, {}, 404],
  ["another path", begin, {}, { path: "/v1/apps" }, 404],
  ["a name that leads here", begin, { host: "evil.example" }, {}, 403],
  ["a page elsewhere", begin, { origin: "https://evil.example" }, {}, 403],
  ["too much", JSON.stringify({ ...INITIALIZE, more: "x".repeat(5 * 1024 * 1024) }), {}, {}, 413],
] as const)("%s is refused with a reason, and costs nothing", async (_what, body, headers, how, status) => {
  const refused = await send(body, headers, how).catch((error: NodeJS.ErrnoException) => ({
    // The server does not read all of what is too large.
    ...{ status: error.code === "EPIPE" || error.code === "ECONNRESET" ? 413 : 0 },
    body: '{"message":""}',
  }));
  expect(refused.status).toBe(status);
  expect(refused.body).toContain("message");
  expect(faults).toEqual([]);
});

test("arguments that a tool does not know are refused before anything is done", async () => {
  const { session = "" } = await send(begin);
  const call = (name: string, given: object) =>
    send(JSON.stringify({ jsonrpc: "2.0", id: 3, method: "tools/call", params: { name, arguments: given } }), {
      "mcp-session-id": session,
    });
  expect((await call("run_command", { sandbox: "a", command: "b", timeout: 5 })).body).toMatch(/isError":true/);
  expect((await call("read_file", { sandbox: "a", path: "relative" })).body).toMatch(/isError":true/);
  expect((await call("list_sandboxes", {})).body).toMatch(/There is no app/);
  expect((await call("no_such_tool", {})).body).toMatch(/not found/i);
});
