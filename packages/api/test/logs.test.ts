import { PassThrough, Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { beforeEach, describe, expect, test } from "vitest";
import { sendBlocks } from "../src/send-blocks.ts";
import { sinceMs } from "../src/since.ts";
import { type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

const APP = "/v1/apps/shop";
let server: TestApi;
let call: Call;
let ids: string[];

beforeEach(async () => {
  ({ server, call } = await testApi());
  ids = [];
  for (let count = 0; count < 2; count += 1) {
    const { body } = await call("POST", `${APP}/machines`, { config: { image: "x" } });
    ids.push(body.id as string);
    await call("GET", `${APP}/machines/${body.id}/wait`);
  }
});

/** What the platform says about a machine that was created and started, and about its stop, without the explanations. */
const STARTED = ["create: created", "start: created -> starting", "started: starting -> running"];
const STOPPED = ["stop: running -> stopping", "halted: stopping -> stopped"];

const short = (text: string) => text.split(". ", 1)[0] ?? "";
const texts = (entries: { text: string }[]) => entries.map(({ text }) => short(text));

test("a machine's lines, and those of all machines of an app", async () => {
  const [one = "", two = ""] = ids;
  await server.print(one, "first");
  await server.print(two, "second", "stderr");
  await call("POST", `${APP}/machines/${one}/stop`);
  const get = async (query: string) => texts((await call("GET", `${APP}/logs${query}`)).body);
  // The state is stored before the line is on the disk.
  await expect.poll(() => get("?limit=1"), { timeout: 10_000 }).toEqual(STOPPED.slice(-1));
  const { status, headers, body } = await call("GET", `${APP}/machines/${one}/logs`);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("application/x-ndjson");
  const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
  const lines = (stream: string, ...all: string[]) =>
    all.map((text) => ({ at, machine: one, stream, text: expect.stringMatching(new RegExp(`^${text}`)) }));
  expect(body).toEqual([
    ...lines("platform", ...STARTED),
    ...lines("stdout", "first"),
    ...lines("platform", ...STOPPED),
  ]);
  expect((await get("")).toSorted()).toEqual([...STARTED, ...STARTED, "first", "second", ...STOPPED].toSorted());
  expect(await get("?limit=3")).toEqual(["second", ...STOPPED]);
  expect(await get("?limit=0")).toEqual([]);
  expect(await get(`?machine=${two}`)).toEqual([...STARTED, "second"]);
  expect(await get(`?machine=${one}&machine=${two}`)).toHaveLength(10);
  expect(await get(`?machine=${one},${two}&stream=stderr,stdout`)).toEqual(["first", "second"]);
  const { at: printed } = body.find(({ text }: { text: string }) => text === "first");
  expect(await get(`?since=${printed}&stream=stdout`)).toEqual(["first"]);
  expect(await get(`?since=${new Date(Date.parse(printed) + 1).toISOString()}&stream=stdout`)).toEqual([]);
  expect(await get("?since=10m")).toHaveLength(10);
});

test.each([
  ["limit=-1", "`limit`"],
  ["limit=10001", "`limit`"],
  ["limit=many", "`limit` must be an integer"],
  ["since=yesterday", "`since` must be a time such as"],
  ["since=2026-13-01T00:00:00Z", "`since` must be a time such as"],
  ["stream=stdot", "`stdot` is not a valid `stream`. Did you mean `stdout`?"],
  ["follow=yes", "`follow` must be one of `1`, `true`, `0`, `false`"],
  ["folow=1", "did you mean `follow`?"],
])("%s is refused with the name of the parameter", async (query, message) => {
  for (const path of [`${APP}/logs`, `${APP}/machines/${ids[0]}/logs`]) {
    const reply = await call("GET", `${path}?${query}`);
    expect(reply).toMatchObject({ status: 400, body: { error: "invalid_argument" } });
    expect(reply.body.message).toContain(message);
  }
});

test("an app or machine that does not exist is 404, followed or not", async () => {
  for (const path of ["/v1/apps/nope/logs", `${APP}/machines/nope/logs?follow=1`, `${APP}/logs?machine=nope&follow=1`])
    expect(await call("GET", path)).toMatchObject({ status: 404, body: { error: "not_found" } });
});

describe("following", () => {
  /** The lines of a reply as they come. */
  async function* follow(path: string, signal?: AbortSignal): AsyncGenerator<string> {
    const headers = { authorization: `Bearer ${server.token}` };
    const { body } = await fetch(server.url + path, { headers, signal: signal ?? null });
    let rest = "";
    for await (const chunk of body ?? []) {
      const lines = (rest + Buffer.from(chunk).toString()).split("\n");
      rest = lines.pop() ?? "";
      yield* texts(lines.filter((line) => line !== "").map((line) => JSON.parse(line) as { text: string }));
    }
  }

  test("lines come as they are printed, until the machine is destroyed", async () => {
    const [id = ""] = ids;
    await server.print(id, "before");
    const lines = follow(`${APP}/machines/${id}/logs?follow=1`);
    for (const line of [...STARTED, "before"]) expect((await lines.next()).value).toBe(line);
    await server.print(id, "live");
    expect((await lines.next()).value).toBe("live");
    server.platform.machines.destroy("shop", id, { force: true });
    expect((await lines.next()).value).toMatch(/^destroy: /);
    expect((await lines.next()).done).toBe(true);
  });

  test("a client that disconnects ends its reader", async () => {
    const leave = new AbortController();
    const lines = follow(`${APP}/logs?follow=true&limit=1`, leave.signal);
    await lines.next();
    expect(server.open.logs).toBe(1);
    leave.abort();
    await expect(lines.next()).rejects.toThrow();
    await expect.poll(() => server.open.logs).toBe(0);
  });

  test("a shutdown of the platform ends the reply after its last line", async () => {
    await server.print(ids[0] ?? "", "last");
    const lines = follow(`${APP}/logs?follow=1&limit=1`);
    expect((await lines.next()).value).toBe("last");
    const closing = server.api.close();
    expect((await lines.next()).done).toBe(true);
    await closing;
  });
});

describe("sending lines", () => {
  async function* blocks(count: number, taken: number[] = []): AsyncGenerator<string, void> {
    for (let index = 0; index < count; index += 1) {
      taken.push(index);
      yield `${JSON.stringify({ index, text: "x".repeat(10_000) })}\n`;
    }
  }

  test("reads up to a buffer ahead of a slow client", async () => {
    const out = new PassThrough();
    const taken: number[] = [];
    const sending = sendBlocks(blocks(100, taken), out, { heartbeat: "\n", signal: new AbortController().signal });
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    expect(taken.length).toBeLessThan(15);
    let text = "";
    for await (const chunk of out) text += String(chunk);
    await sending;
    expect(text.split("\n").filter((line) => line !== "")).toHaveLength(100);
  });

  test("disconnects a client that stops reading", async () => {
    const out = new PassThrough();
    const cut = new Promise((resolve) => out.once("error", resolve));
    await sendBlocks(blocks(100), out, { heartbeat: "\n", signal: new AbortController().signal, stallMs: 20 });
    expect(out.destroyed).toBe(true);
    await cut;
  });

  test("sends an empty line from time to time while the log is quiet", async () => {
    const out = new PassThrough();
    const ending = Promise.withResolvers<void>();
    async function* quiet(): AsyncGenerator<string, void> {
      await ending.promise;
      yield "1\n";
    }
    const sending = sendBlocks(quiet(), out, { heartbeat: "\n", signal: new AbortController().signal, heartbeatMs: 5 });
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

  test.each(["", " 10m", "10", "m", "-5m", "10 m", "1w", "2026-01-01", "now", "9".repeat(400)])(
    "refuses %j",
    (text) => {
      expect(() => sinceMs(text, now)).toThrow(HibernautError);
    },
  );
});
