/** Logins for registries over HTTP: when they are stored, refused and cancelled. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeRegistries } from "../../platform/test/helpers/fake-images.ts";
import { startApi, type TestApi } from "./helpers.ts";

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

test("a login is stored although the registry answers long after the request was read", async () => {
  const reply = await login("ghcr.io", "right");
  expect([reply.status, await reply.json()]).toEqual([200, { host: "ghcr.io", username: "me" }]);
  expect([...registries.logins]).toEqual([["ghcr.io", "me"]]);
});

test.each(["99999999999999999999", "1.99999999999", "ghcr.io:99999", "a..b"])(
  "%s is not the name of a registry, for any request",
  async (host) => {
    const refusal = { error: "invalid_argument", message: expect.stringContaining("not a valid registry name") };
    expect(await (await login(host, "right")).json()).toMatchObject(refusal);
    for (const method of ["GET", "DELETE"]) {
      const headers = { authorization: `Bearer ${server.token}` };
      const reply = await fetch(`${server.url}/v1/registries/${host}`, { method, headers });
      expect([reply.status, await reply.json()]).toMatchObject([400, refusal]);
    }
  },
);

test("a wrong password is refused with the registry's message", async () => {
  const reply = await login("ghcr.io", "wrong");
  expect(reply.status).toBe(412);
  expect(await reply.json()).toMatchObject({ error: "failed_precondition" });
});

test("a client that disconnects cancels its login; nothing is stored or logged", async () => {
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
