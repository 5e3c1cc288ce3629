import { afterAll, beforeAll, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { fuzz } from "./fuzz.ts";
import { startApi, type TestApi } from "./helpers.ts";

let server: TestApi;
beforeAll(async () => void (server = await startApi()));
afterAll(() => server.close());

/** Sends wild requests, half of them with other scopes. */
async function withstand(requests: number, seed: number): Promise<void> {
  const { seen, refused } = await fuzz(server, { requests, seed });
  // Requests that never get past the door or the validation would prove nothing.
  for (const status of [200, 201, 400, 403, 404])
    expect(seen.get(status) ?? 0, `replies with ${status}`).toBeGreaterThan(5);
  expect(refused.expected).toBeGreaterThan(requests / 4);
}

test("wild requests: no 5xx, one shape of errors, no scope crossed", { timeout: 300_000 }, () => withstand(800, 18));

test("many other ones", { timeout: 300_000, tags: "again" }, () => withstand(longOr(8000, 2000), 19));
