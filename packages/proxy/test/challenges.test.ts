/** Challenges of certificate authorities: every proxy answers those that are open, and no others. */
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ChallengeBoard } from "../../certs/src/challenges.ts";
import { newWorld, startPlatform } from "../../platform/test/helpers/fake-world.ts";
import { connectInProcess } from "../src/connect-in-process.ts";
import { ConnectedProxies } from "../src/connected-proxies.ts";
import { createProxyServer } from "../src/http/server.ts";
import type { ToProxy } from "../src/messages.ts";
import { ProxyCoordinator } from "../src/proxy-coordinator.ts";
import { parsed, RawClient } from "./http/helpers.ts";

const TARGET = "/.well-known/acme-challenge/token";

async function rig() {
  const world = await newWorld();
  const platform = await startPlatform(world);
  const board = new ChallengeBoard();
  const proxies = new ConnectedProxies();
  const coordinator = new ProxyCoordinator({
    ...platform,
    proxies,
    suffixes: ["localhost"],
    idleCheckIntervalMs: 3_600_000,
    connectionsSurvive: false,
    challenges: board,
    log: { warn() {} },
  });
  board.subscribe(() => coordinator.challengesChanged());
  const newProxy = () => connectInProcess(coordinator, { maxHeld: 10, holdTimeoutMs: 10_000, connectTimeoutMs: 1000 });
  const open = [newProxy(), newProxy()];
  onTestFinished(async () => {
    for (const proxy of open) proxy.close();
    await coordinator.close();
    await platform.close();
    await world.dispose();
  });
  return { board, coordinator, open, newProxy, proxies };
}

test("an answer is given by every proxy from when it is published until it is taken back", async () => {
  const { board, open, newProxy } = await rig();
  const answers = () => open.map(({ broker }) => broker.challengeAnswer("www.example.com", TARGET));
  expect(answers()).toEqual([undefined, undefined]);
  const end = await board.publish("www.example.com", "token", "answer");
  expect(answers()).toEqual(["answer", "answer"]);
  const late = newProxy();
  open.push(late);
  await late.settled();
  expect(answers()).toEqual(["answer", "answer", "answer"]);
  await end();
  expect(answers()).toEqual([undefined, undefined, undefined]);
});

test("a proxy that does not answer holds no order up for long", async () => {
  const { board, coordinator } = await rig();
  const told: ToProxy[] = [];
  const deaf = coordinator.connect((message) => void told.push(message));
  onTestFinished(() => deaf.close());
  await board.publish("www.example.com", "token", "answer");
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
  const { board, open } = await rig();
  await board.publish("www.example.com", "token", "answer");
  const [first] = open;
  if (first === undefined) throw new Error("no proxy");
  const log: (string | undefined)[] = [];
  const server = createProxyServer({ leases: first.broker, onAccess: ({ error }) => void log.push(error) });
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
