/** Pulls over HTTP, as far as the client's end of the connection matters. */
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

test("a pull goes on after its request was read, to its end", async () => {
  const lines = (await (await pull("app:1")).text()).trim().split("\n");
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ done: true, ref: "app:1" });
});

test("a client that goes away before the registry says a word ends its pull, and nothing is wrong", async () => {
  const gone = new AbortController();
  const asking = pull("silent:1", gone.signal);
  await expect.poll(() => server.world.images.waiting).toBe(1);
  gone.abort();
  await expect(asking).rejects.toThrow();
  await expect.poll(() => server.world.images.waiting).toBe(0);
  await server.api.close();
  expect(server.logged).toEqual([]);
});
