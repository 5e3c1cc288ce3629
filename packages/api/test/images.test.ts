/** Pulls over HTTP: what happens when the client stays, and when it disconnects. */
import { beforeEach, expect, test } from "vitest";
import { type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
beforeEach(async () => {
  ({ server, call } = await testApi());
});

const pull = (ref: string, init?: RequestInit) => call("POST", "/v1/images/pull", { ref }, init);

test("a pull continues to its end after its request was read", async () => {
  expect((await pull("app:1")).body.at(-1)).toMatchObject({ done: true, ref: "app:1" });
});

test("a client that disconnects before the registry answers cancels its pull, and nothing is logged", async () => {
  const gone = new AbortController();
  const asking = pull("silent:1", { signal: gone.signal });
  await expect.poll(() => server.world.images.waiting).toBe(1);
  gone.abort();
  await expect(asking).rejects.toThrow();
  await expect.poll(() => server.world.images.waiting).toBe(0);
  await server.api.close();
  expect(server.logged).toEqual([]);
});
