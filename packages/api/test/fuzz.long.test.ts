import { expect, test } from "vitest";
import { fuzz } from "./fuzz.ts";
import { startApi } from "./helpers.ts";

/** Each has a platform of its own, so that what the earlier ones made does not pile up. */
const ROUNDS = 10;
const REQUESTS = 10_000;

test.each(Array.from({ length: ROUNDS }, (_, round) => [round + 1]))(
  `${ROUNDS} times ${REQUESTS} wild requests, half with other scopes: round %i`,
  { timeout: 1_800_000 },
  async (round) => {
    const server = await startApi();
    try {
      const { seen, refused } = await fuzz(server, { requests: REQUESTS, seed: round });
      for (const status of [200, 201, 400, 403, 404])
        expect(seen.get(status) ?? 0, `replies with ${status}`).toBeGreaterThan(20);
      expect(refused.expected).toBeGreaterThan(REQUESTS / 4);
    } finally {
      await server.close();
    }
  },
);
