/** Requests that come to one host's proxy, for machines of another host. */
import { expect, test } from "vitest";
import { startHosts } from "./hosts-world.ts";
import { until } from "../http/helpers.ts";

test("a request at one host wakes a machine that sleeps on another", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine((request, response) => response.end(`${request.method} ${request.url}`));
  await b.suspend(id);
  await until(() => a.view.state(id)?.state === "suspended", "host a to hear of it");

  const { status, body, headers } = await a.ask("/hello?x=1");

  expect({ status, body }).toEqual({ status: 200, body: "GET /hello?x=1" });
  expect(headers["hibernaut-wake"]).toMatch(/^resume; dur=\d+$/);
  expect(b.state(id)).toBe("running");
  expect(a.forwarded).toEqual(["b"]);
  expect([...a.faults, ...b.faults]).toEqual([]);
});
