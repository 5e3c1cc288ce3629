/** Logins for registries over HTTP: when they are stored, refused and cancelled. */
import { beforeEach, expect, test } from "vitest";
import { FakeRegistries } from "../../platform/test/helpers/fake-images.ts";
import { type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let registries: FakeRegistries;
let server: TestApi;
let call: Call;
beforeEach(async () => {
  registries = new FakeRegistries();
  ({ server, call } = await testApi({ registries }));
});

const login = (host: string, password: string, init?: RequestInit) =>
  call("PUT", `/v1/registries/${host}`, { username: "me", password }, init);

test("a login is stored although the registry answers long after the request was read", async () => {
  expect(await login("ghcr.io", "right")).toMatchObject({ status: 200, body: { host: "ghcr.io", username: "me" } });
  expect([...registries.logins]).toEqual([["ghcr.io", "me"]]);
});

test.each(["99999999999999999999", "1.99999999999", "ghcr.io:99999", "a..b"])(
  "%s is not the name of a registry, for any request",
  async (host) => {
    const message = expect.stringContaining("not a valid registry name");
    for (const reply of [
      await login(host, "right"),
      await call("GET", `/v1/registries/${host}`),
      await call("DELETE", `/v1/registries/${host}`),
    ])
      expect(reply).toMatchObject({ status: 400, body: { error: "invalid_argument", message } });
  },
);

test("a wrong password is refused with the registry's message", async () => {
  expect(await login("ghcr.io", "wrong")).toMatchObject({ status: 412, body: { error: "failed_precondition" } });
});

test("a client that disconnects cancels its login; nothing is stored or logged", async () => {
  const gone = new AbortController();
  const asking = login("silent.example", "right", { signal: gone.signal });
  await expect.poll(() => registries.asking).toBe(1);
  gone.abort();
  await expect(asking).rejects.toThrow();
  await expect.poll(() => registries.asking).toBe(0);
  await server.api.close();
  expect(registries.logins.size).toBe(0);
  expect(server.logged).toEqual([]);
});
