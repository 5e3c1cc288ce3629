/** The client in a page that the platform serves: over real HTTP, without a token. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { ApiError, BrowserClient } from "../src/browser.ts";
import { followEvents, type StreamPosition } from "../src/events.ts";

/** Silence that means a lost connection, in milliseconds. Every other wait of these tests ends with something that comes. */
const SILENCE_MS = 200;

/** A platform that answers as it is told. Returns a client of it, and what it was asked. */
async function platform(answer: (request: IncomingMessage, reply: ServerResponse) => void) {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, reply) => {
    asked.push(request);
    answer(request, reply);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { client: new BrowserClient({ origin }), asked, server };
}

function sendEvent(reply: ServerResponse, sequence: number): void {
  const event = {
    sequence,
    at: "2026-01-31T14:30:00Z",
    type: "app.created",
    app_name: "shop",
    machine_id: null,
    data: {},
  };
  reply.write(`id: ${sequence}\nevent: app.created\ndata: ${JSON.stringify(event)}\n\n`);
}

test("requests have no token: the browser adds its cookie", async () => {
  const { client, asked } = await platform((_request, reply) => reply.end(JSON.stringify({ apps: [] })));
  expect(await client.listApps()).toEqual([]);
  expect(asked[0]?.headers.authorization).toBeUndefined();
});

test("a platform that is not there is reported in words for someone at a browser", async () => {
  const { client, server } = await platform(() => {});
  server.close();
  const failure = await client.listApps().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ApiError);
  expect(failure).toMatchObject({ code: "unavailable", status: 0 });
  expect(String(failure)).toContain("your network reaches it");
  expect(String(failure)).not.toContain("HIBERNAUT_API_URL");
});

test("a stream that falls silent counts as lost, and the next connection continues where it was", async () => {
  const { client, asked } = await platform((request, reply) => {
    const since = new URL(request.url ?? "", "http://platform").searchParams.get("since");
    reply.writeHead(200, { "content-type": "text/event-stream" }).write(`retry: 1000\n\nid: ${since ?? 4}\n\n`);
    sendEvent(reply, since === null ? 5 : 6);
  });
  const connected: StreamPosition[] = [];
  const lost: string[] = [];
  const events = client.followEvents({
    silenceMs: SILENCE_MS,
    onConnected: (after) => connected.push(after),
    onLost: ({ code, message }) => lost.push(`${code}: ${message}`),
  });
  const sequences: unknown[] = [];
  for await (const event of events) {
    sequences.push("sequence" in event && event.sequence);
    if (sequences.length === 2) break;
  }
  expect(sequences).toEqual([5, 6]);
  expect(connected).toEqual([4, 5]);
  expect(lost).toEqual(["unavailable: The platform has sent nothing for 0.2 s."]);
  expect(asked.map(({ url }) => url)).toEqual(["/v1/stream?follow=1", "/v1/stream?since=5&follow=1"]);
});

test("heartbeats keep a quiet stream alive", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const lost: unknown[] = [];
  async function* lines() {
    yield "id: 4";
    for (let beat = 0; beat < 10; beat++) {
      await new Promise((resolve) => setTimeout(resolve, SILENCE_MS - 1));
      yield ":";
    }
    yield 'data: {"sequence":5,"type":"app.created"}';
  }
  const next = followEvents(lines, { silenceMs: SILENCE_MS, onLost: (error) => lost.push(error) }).next();
  await vi.advanceTimersByTimeAsync(10 * SILENCE_MS);
  expect((await next).value).toEqual({ sequence: 5, type: "app.created" });
  expect(lost).toEqual([]);
});

test("an aborted wait between two connections ends at once, with the reason", async () => {
  const { client, server } = await platform(() => {});
  server.close();
  const end = new AbortController();
  const reason = new Error("enough");
  const reading = client.followEvents({ signal: end.signal, onLost: () => end.abort(reason) }).next();
  await expect(reading).rejects.toBe(reason);
});
