import { afterAll, beforeAll, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { fuzz } from "./fuzz.ts";
import { startApi, type TestApi } from "./helpers.ts";

let server: TestApi;
beforeAll(async () => void (server = await startApi()));
afterAll(() => server.close());

/** Half of them have other scopes. */
const REQUESTS = longOr(8000, 2000);

test("wild requests, half with other scopes: no 5xx, one shape of errors, no scope crossed", {
  timeout: 300_000,
}, async () => {
  const { seen, refused } = await fuzz(server, { requests: REQUESTS, seed: 18 });
  // Requests that never get past the door or the validation would prove nothing.
  for (const status of [200, 201, 400, 403, 404])
    expect(seen.get(status) ?? 0, `replies with ${status}`).toBeGreaterThan(5);
  expect(refused.expected).toBeGreaterThan(REQUESTS / 4);
});
