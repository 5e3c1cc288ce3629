/** Challenges of certificate authorities: every proxy answers those that are open, and no others. */
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createProxyServer } from "../src/http/server.ts";
import type { ToProxy } from "../src/messages.ts";
import { parsed, RawClient } from "./http/helpers.ts";
import { useProxyWorld, w } from "./proxy-world.ts";

const TARGET = "/.well-known/acme-challenge/token";

useProxyWorld();

test("an answer is given by every proxy from when it is published until it is taken back", async () => {
  await w.anotherProxy();
  const answers = () => w.proxies.map(({ broker }) => broker.challengeAnswer("www.example.com", TARGET));
  expect(answers()).toEqual([undefined, undefined]);
  const end = await w.board.publish("www.example.com", "token", "answer");
  expect(answers()).toEqual(["answer", "answer"]);
  await w.anotherProxy();
  expect(answers()).toEqual(["answer", "answer", "answer"]);
  await end();
  expect(answers()).toEqual([undefined, undefined, undefined]);
});

test("a proxy that does not answer holds no order up for long", async () => {
  const told: ToProxy[] = [];
  const deaf = w.coordinator.connect((message) => void told.push(message));
  onTestFinished(() => deaf.close());
  await w.board.publish("www.example.com", "token", "answer");
  expect(told.at(-1)).toMatchObject({ kind: "challenges", challenges: { "www.example.com/token": "answer" } });
});

test.each([
  ["GET", "www.example.com", TARGET, 200, "answer"],
  ["GET", "WWW.example.com:80", `${TARGET}?again`, 200, "answer"],
  ["GET", "www.example.com.", TARGET, 200, "answer"],
  ["HEAD", "www.example.com", TARGET, 200, ""],
  ["POST", "www.example.com", TARGET, 404, undefined],
  ["GET", "other.example.com", TARGET, 404, undefined],
  ["GET", "www.example.com", "/.well-known/acme-challenge/other", 404, undefined],
  ["GET", "www.example.com", "/.well-known/acme-challenge/toString", 404, undefined],
  ["GET", "www.example.com", "/.well-known/acme-challenge", 404, undefined],
  ["GET", "www.example.com", "/", 404, undefined],
])("%s %s%s gets %d", async (method, host, target, status, text) => {
  await w.board.publish("www.example.com", "token", "answer");
  const { broker } = await w.anotherProxy();
  const log: (string | undefined)[] = [];
  const server = createProxyServer({ leases: broker, onAccess: ({ error }) => void log.push(error) });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close(0));
  const client = new RawClient(connect(port, "127.0.0.1"));
  client.send(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  await client.ends();
  const answer = parsed(client.text);
  expect(answer.status).toBe(status);
  if (text === undefined) expect(answer.body).toContain("unknown_host");
  else expect(answer.body).toBe(text);
  expect(log).toEqual([text === undefined ? "unknown_host" : undefined]);
});
