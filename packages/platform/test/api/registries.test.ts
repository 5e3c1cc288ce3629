/** Logins at registries over HTTP: how long they are asked for, and by whom they are given up. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { startApi, type TestApi } from "./helpers.ts";
import { FakeRegistries } from "../helpers/fake-images.ts";

let registries: FakeRegistries;
let server: TestApi;
beforeEach(async () => {
  registries = new FakeRegistries();
  server = await startApi({ registries });
});
afterEach(() => server.close());

function login(host: string, password: string, signal?: AbortSignal): Promise<Response> {
  return fetch(`${server.url}/v1/registries/${host}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
    body: JSON.stringify({ username: "me", password }),
    signal: signal ?? null,
  });
}

test("a login is stored, although its request was read long before the registry answers", async () => {
  const reply = await login("ghcr.io", "right");
  expect([reply.status, await reply.json()]).toEqual([200, { host: "ghcr.io", username: "me" }]);
  expect([...registries.logins]).toEqual([["ghcr.io", "me"]]);
});

test("a wrong password is refused in the registry's words", async () => {
  const reply = await login("ghcr.io", "wrong");
  expect(reply.status).toBe(412);
  expect(await reply.json()).toMatchObject({ error: "failed_precondition" });
});

test("a client that goes away ends its login; nothing is stored, and nothing is wrong", async () => {
  const gone = new AbortController();
  const asking = login("silent.example", "right", gone.signal);
  await expect.poll(() => registries.asking).toBe(1);
  gone.abort();
  await expect(asking).rejects.toThrow();
  await expect.poll(() => registries.asking).toBe(0);
  await server.api.close();
  expect(registries.logins.size).toBe(0);
  expect(server.logged).toEqual([]);
});
