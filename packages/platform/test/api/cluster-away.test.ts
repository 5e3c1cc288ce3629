/** A cluster while one of its hosts is away: the others answer with what they have, and say who is missing. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
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

test("a machine that another host refused, and this one created, has its end in the audit log", async () => {
  const post = (url: string, body: object) =>
    fetch(url, {
      method: "POST",
      headers: { ...auth(), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const [, b] = cluster.hosts as [ApiHost, ApiHost];
  // The directory still praises host b, which drains.
  await cluster.setUp("a", { memoryMb: { total: 999, free: 200 } });
  await cluster.setUp("b", { memoryMb: { total: 99_999, free: 90_000 } });
  await cluster.setUp("c", false);
  expect((await post(`${b.url}/v1/platform/drain`, {})).status).toBeLessThan(300);
  const config = { image: "app:1", guest: { memory_mb: 128 } };
  const made = await post(`${a.url}/v1/apps/shop/machines`, { name: "late", config });
  expect(made.status).toBe(201);
  await cluster.setUp("c", true);
  const response = await fetch(`${a.url}/v1/audit?limit=1000`, { headers: auth() });
  const lines = (await response.text()).split("\n").filter((line) => line !== "");
  const phases = lines
    .map((line) => JSON.parse(line) as { phase: string; target?: { name?: string } })
    .filter(({ target }) => target?.name === "late")
    .map(({ phase }) => phase);
  expect(phases.filter((phase) => phase === "end")).toHaveLength(phases.filter((phase) => phase === "begin").length);
});

test("a machine that has just come, and is not taken in yet, is not said to be destroyed", async () => {
  await cluster.claim(a, "shop", "11111111111111", "coming");
  const response = await fetch(`${a.url}/v1/apps/shop/machines/11111111111111`, { headers: auth() });
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ error: "unavailable", message: expect.stringContaining("just come") });
});

test("an offer of another protocol is not an upgrade, also at another host", async () => {
  const [, b] = cluster.hosts as [ApiHost, ApiHost];
  await cluster.claim(b, "shop", "22222222222222", "there");
  const asked = request(`${a.url}/v1/apps/shop/machines/22222222222222`, {
    headers: { ...auth(), upgrade: "h2c", connection: "close" },
  }).end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  response.resume();
  // Host b answers, to whom the machine has only just come.
  expect([response.statusCode, response.headers["hibernaut-host"]]).toEqual([503, "b"]);
});
