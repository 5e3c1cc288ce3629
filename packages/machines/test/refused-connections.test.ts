/** What a machine's history tells of the connections that it was refused. */
import { expect, test } from "vitest";
import { MOST_TOLD, RefusedConnections, TOLD_FOR_MS } from "../src/refused-connections.ts";

test("each destination once in a while, and of many the first, with when there will be more", () => {
  const refused = new RefusedConnections();
  const to = (port: number) => ({ destination: "192.0.2.1", protocol: "tcp" as const, port });
  const told = Array.from({ length: 100 }, (_, port) => refused.add("one", to(port % 40), 1_000)).filter(Boolean);
  expect(told).toHaveLength(MOST_TOLD);
  expect(told[0]).toEqual(to(0));
  expect(told.at(-1)).toEqual({ ...to(MOST_TOLD - 1), more_from: new Date(1_000 + TOLD_FOR_MS).toISOString() });
  // Another machine has a history of its own.
  expect(refused.add("two", to(1), 2_000)).toEqual(to(1));
  expect(refused.add("one", to(1), 1_000 + TOLD_FOR_MS)).toEqual(to(1));
});
