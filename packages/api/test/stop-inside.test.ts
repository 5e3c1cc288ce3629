/** A stop from inside a machine: when it ends, but not how, which would let a program hold off its own end. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { testApi } from "./helpers.ts";

test("a machine may stop itself, on no other terms than those of its configuration", async () => {
  const local = new WeakMap<object, string>();
  const { server, call } = await testApi({ local });
  const machines = "/v1/apps/shop/machines";
  const { id } = (await call("POST", machines, { config: { image: "app:1" } })).body;
  await call("GET", `${machines}/${id}/wait`);
  /** Over a connection of its own: that of the machine. */
  const inside = async (body: object) => {
    server.api.server.once("connection", (socket: object) => local.set(socket, id));
    const headers = { "content-type": "application/json" };
    const sent = request(`${server.url}${machines}/${id}/stop`, { method: "POST", agent: false, headers });
    sent.end(JSON.stringify(body));
    const [reply] = (await once(sent, "response")) as [IncomingMessage];
    return { status: reply.statusCode, body: JSON.parse(await text(reply)) as object };
  };
  for (const terms of [{ timeout: 300 }, { signal: "SIGWINCH" }, { signal: "SIGWINCH", timeout: 300 }])
    expect(await inside(terms)).toMatchObject({ status: 403, body: { error: "permission_denied" } });
  expect((await call("GET", `${machines}/${id}`)).body.state).toBe("running");
  expect(await inside({})).toMatchObject({ status: 200 });
  expect(await call("GET", `${machines}/${id}/wait?state=stopped`)).toMatchObject({ status: 200 });
});
