import { PassThrough, Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HibernautError } from "../../src/domain/errors.ts";
import { sendLines } from "../../src/api/send-lines.ts";
import { sinceMs } from "../../src/api/since.ts";
import { startApi, type TestApi } from "./helpers.ts";
import { type Call, checkedCalls } from "./openapi-check.ts";

const APP = "/v1/apps/shop";
let server: TestApi;
let call: Call;
let ids: string[];

beforeEach(async () => {
  server = await startApi();
  call = await checkedCalls(server);
  await call("POST", "/v1/apps", { app_name: "shop" });
  ids = [];
  for (let count = 0; count < 2; count += 1) {
    const body = { config: { image: "x" }, skip_launch: true };
    ids.push((await call("POST", `${APP}/machines`, body)).body.id as string);
  }
});
afterEach(() => server.close());

const texts = (entries: { text: string }[]) => entries.map(({ text }) => text);

test("a machine's lines, and those of all machines of an app", async () => {
  const [one = "", two = ""] = ids;
  server.machines.print(one, "first", "stdout", "2026-01-01T00:00:00.000Z");
  server.machines.print(two, "second", "stderr", "2026-01-01T00:00:01.000Z");
  server.machines.print(one, "third", "platform", "2026-01-01T00:00:02.000Z");
  const { status, headers, body } = await call("GET", `${APP}/machines/${one}/logs`);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("application/x-ndjson");
  expect(body).toEqual([
    { at: "2026-01-01T00:00:00.000Z", machine: one, stream: "stdout", text: "first" },
    { at: "2026-01-01T00:00:02.000Z", machine: one, stream: "platform", text: "third" },
  ]);
  const get = async (query: string) => texts((await call("GET", `${APP}/logs${query}`)).body);
  expect(await get("")).toEqual(["first", "second", "third"]);
  expect(await get("?limit=1")).toEqual(["third"]);
  expect(await get("?limit=0")).toEqual([]);
  expect(await get(`?machine=${two}`)).toEqual(["second"]);
  expect(await get(`?machine=${one}&machine=${two}`)).toHaveLength(3);
  expect(await get(`?machine=${one},${two}&stream=stderr,platform`)).toEqual(["second", "third"]);
  expect(await get("?since=2026-01-01T00:00:01Z")).toEqual(["second", "third"]);
  expect(await get("?since=10m")).toEqual([]);
});

test.each([
  ["limit=-1", "`limit`"],
  ["limit=10001", "`limit`"],
  ["limit=many", "`limit` must be an integer"],
  ["since=yesterday", "`since` must be a time such as"],
  ["since=2026-13-01T00:00:00Z", "`since` must be a time such as"],
  ["stream=stdot", "`stream` knows no `stdot`. Did you mean `stdout`?"],
  ["follow=yes", "`follow` must be one of `1`, `true`, `0`, `false`"],
  ["folow=1", "did you mean `follow`?"],
])("%s is refused by name", async (query, message) => {
  for (const path of [`${APP}/logs`, `${APP}/machines/${ids[0]}/logs`]) {
    const reply = await call("GET", `${path}?${query}`);
    expect(reply).toMatchObject({ status: 400, body: { error: "invalid_argument" } });
    expect(reply.body.message).toContain(message);
  }
});

test("what does not exist is 404, whether followed or not", async () => {
  for (const path of ["/v1/apps/nope/logs", `${APP}/machines/nope/logs?follow=1`, `${APP}/logs?machine=nope&follow=1`])
    expect(await call("GET", path)).toMatchObject({ status: 404, body: { error: "not_found" } });
});

describe("followed", () => {
  /** The lines of a reply as they come. */
  async function* follow(path: string, signal?: AbortSignal): AsyncGenerator<string> {
    const headers = { authorization: `Bearer ${server.token}` };
    const { body } = await fetch(server.url + path, { headers, signal: signal ?? null });
    let rest = "";
    for await (const chunk of body ?? []) {
      const lines = (rest + Buffer.from(chunk).toString()).split("\n");
      rest = lines.pop() ?? "";
      yield* lines.filter((line) => line !== "").map((line) => (JSON.parse(line) as { text: string }).text);
    }
  }

  test("lines come as they are printed, until the machine is destroyed", async () => {
    const [id = ""] = ids;
    server.machines.print(id, "before");
    const lines = follow(`${APP}/machines/${id}/logs?follow=1`);
    expect((await lines.next()).value).toBe("before");
    server.machines.print(id, "live");
    expect((await lines.next()).value).toBe("live");
    server.machines.destroy("shop", id);
    expect((await lines.next()).done).toBe(true);
  });

  test("a client that leaves is forgotten", async () => {
    const leave = new AbortController();
    const lines = follow(`${APP}/logs?follow=true`, leave.signal);
    server.machines.print(ids[0] ?? "", "one");
    await lines.next();
    await expect.poll(() => server.machines.followers.size).toBe(1);
    leave.abort();
    await expect(lines.next()).rejects.toThrow();
    await expect.poll(() => server.machines.followers.size).toBe(0);
  });

  test("the end of the platform ends the reply, whole", async () => {
    server.machines.print(ids[0] ?? "", "last");
    const lines = follow(`${APP}/logs?follow=1`);
    expect((await lines.next()).value).toBe("last");
    const closing = server.api.close();
    expect((await lines.next()).done).toBe(true);
    await closing;
  });
});

describe("sending lines", () => {
  async function* blocks(count: number, taken: number[] = []): AsyncGenerator<unknown[], void> {
    for (let index = 0; index < count; index += 1) {
      taken.push(index);
      yield [{ index, text: "x".repeat(10_000) }];
    }
  }

  test("nothing is read ahead of a slow reader", async () => {
    const out = new PassThrough();
    const taken: number[] = [];
    const sending = sendLines(blocks(100, taken), out, { signal: new AbortController().signal });
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    expect(taken.length).toBeLessThan(15);
    let text = "";
    for await (const chunk of out) text += String(chunk);
    await sending;
    expect(text.split("\n").filter((line) => line !== "")).toHaveLength(100);
  });

  test("a reader that stands still is cut off", async () => {
    const out = new PassThrough();
    const cut = new Promise((resolve) => out.once("error", resolve));
    await sendLines(blocks(100), out, { signal: new AbortController().signal, stallMs: 20 });
    expect(out.destroyed).toBe(true);
    await cut;
  });

  test("a quiet log says an empty line now and then", async () => {
    const out = new PassThrough();
    const ending = Promise.withResolvers<void>();
    async function* quiet(): AsyncGenerator<unknown[], void> {
      await ending.promise;
      yield [1];
    }
    const sending = sendLines(quiet(), out, { signal: new AbortController().signal, heartbeatMs: 5 });
    const [beat] = (await Readable.from(out).take(1).toArray()) as Buffer[];
    expect(beat?.toString()).toBe("\n");
    ending.resolve();
    await sending;
  });
});

describe("since", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");

  test.each([
    ["30s", now - 30_000],
    ["10m", now - 600_000],
    ["1h30m", now - 5_400_000],
    ["1d", now - 86_400_000],
    ["0s", now],
    ["2026-01-01T12:00:00Z", Date.parse("2026-01-01T12:00:00Z")],
    ["2026-01-01T12:00:00.5+02:00", Date.parse("2026-01-01T10:00:00.5Z")],
  ])("%s", (text, at) => {
    expect(sinceMs(text, now)).toBe(at);
  });

  test.each(["", " 10m", "10", "m", "-5m", "10 m", "1w", "2026-01-01", "now", "9".repeat(400)])("not %j", (text) => {
    expect(() => sinceMs(text, now)).toThrow(HibernautError);
  });
});
