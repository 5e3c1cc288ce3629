/** Pulls over HTTP: what happens when the client stays, and when it disconnects. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { startApi, type TestApi } from "./helpers.ts";

let server: TestApi;
beforeEach(async () => {
  server = await startApi();
});
afterEach(() => server.close());

function pull(ref: string, signal?: AbortSignal): Promise<Response> {
  return fetch(`${server.url}/v1/images/pull`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
    body: JSON.stringify({ ref }),
    signal: signal ?? null,
  });
}

test("a pull continues to its end after its request was read", async () => {
  const lines = (await (await pull("app:1")).text()).trim().split("\n");
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ done: true, ref: "app:1" });
});

test("a client that disconnects before the registry answers cancels its pull, and nothing is logged", async () => {
  const gone = new AbortController();
  const asking = pull("silent:1", gone.signal);
  await expect.poll(() => server.world.images.waiting).toBe(1);
  gone.abort();
  await expect(asking).rejects.toThrow();
  await expect.poll(() => server.world.images.waiting).toBe(0);
  await server.api.close();
  expect(server.logged).toEqual([]);
});
