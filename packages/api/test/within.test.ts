/** Requests from within the process, for clients of other ports. */
import fastify from "fastify";
import { expect, test } from "vitest";
import { clientGone } from "../src/client-gone.ts";
import type { Api } from "../src/deps.ts";
import { askWithin, handReplies } from "../src/within.ts";

const ASKED = {
  method: "POST",
  url: "/exec",
  headers: { "content-type": "application/json" },
  payload: "{}",
  remoteAddress: "::1",
} as const;

function api(answer: (gone: AbortSignal) => Promise<object>): Api {
  const app = fastify() as unknown as Api;
  handReplies(app);
  app.post("/exec", async (_request, reply) => answer(clientGone(reply)));
  return app;
}

test("end when the client that they are for has gone, also after their body was read", async () => {
  const client = new AbortController();
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const app = api(async (gone) => {
    begin();
    await new Promise((resolve) => gone.addEventListener("abort", resolve));
    return { killed: true };
  });
  const asking = askWithin(app, { ...ASKED, signal: client.signal });
  await began;
  client.abort();
  expect(await asking).toEqual({ statusCode: 200, reply: { killed: true } });
});

test("get the reply itself, and nobody else does", async () => {
  const reply = { of: ["the route"] };
  const app = api(async () => reply);
  expect((await askWithin(app, { ...ASKED, signal: new AbortController().signal })).reply).toBe(reply);
  const outside = await app.inject({ ...ASKED, headers: { ...ASKED.headers, "hibernaut-within": "x" } });
  expect(outside.json()).toEqual(reply);
});
