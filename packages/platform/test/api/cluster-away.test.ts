/** A cluster while one of its hosts is away: the others answer with what they have, and say who is missing. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";

let cluster: ApiHosts;
let a: ApiHost;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a] = cluster.hosts as [ApiHost];
  const made = await fetch(`${a.url}/v1/apps`, {
    method: "POST",
    headers: { ...auth(), "content-type": "application/json" },
    body: JSON.stringify({ app_name: "shop" }),
  });
  expect(made.status).toBe(201);
});
afterAll(() => cluster.close());

function auth() {
  return { authorization: `Bearer ${cluster.token}` };
}

test.each(["/v1/apps/shop/logs", "/v1/audit"])("%s is answered without the host that is away", async (path) => {
  await cluster.setUp("c", false);
  const response = await fetch(a.url + path, { headers: auth() });
  expect(response.status).toBe(200);
  expect(response.headers.get("hibernaut-hosts-missing")).toBe("c");
  // The reply ends in order. What failed behind it would fail the test run, as it ended the platform.
  const lines = (await response.text()).split("\n").filter((line) => line !== "");
  expect(lines.map((line) => typeof JSON.parse(line))).toEqual(lines.map(() => "object"));
  await cluster.setUp("c", true);
});
