/** A cluster while one of its hosts is away: the others answer with what they have, and say who is missing. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { KEYS } from "@hibernaut/cluster/keys";
import { newUlid } from "@hibernaut/machines";
import { Value } from "typebox/value";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MachineReply, type MachineWire } from "../src/routes/machines.schemas.ts";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";
import { as } from "./helpers.ts";

let cluster: ApiHosts;
let a: ApiHost;
let b: ApiHost;
let c: ApiHost;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a, b, c] = cluster.hosts;
  await cluster.ask(a, "POST", "/v1/apps", { app_name: "shop" });
});
afterAll(() => cluster.close());

const lines = (text: string) => text.split("\n").filter((line) => line !== "");

test.each(["/v1/apps/shop/logs", "/v1/audit"])("%s is answered without the host that is away", async (path) => {
  await cluster.setUp("c", false);
  const response = await fetch(a.url + path, as(cluster.token));
  expect(response.status).toBe(200);
  expect(response.headers.get("hibernaut-hosts-missing")).toBe("c");
  // The reply ends in order. What failed behind it would fail the test run, as it ended the platform.
  for (const line of lines(await response.text())) expect(JSON.parse(line)).toBeTypeOf("object");
  await cluster.setUp("c", true);
});

test("machines of a host that is away are listed as they were last known", async () => {
  const id = "33333333333333";
  const createdAt = "2026-01-01T00:00:00.000Z";
  const config = { image: "app:1", guest: { memory_mb: 128 } };
  await cluster.claim(c, "shop", id, "far");
  await cluster.write({
    [KEYS.states + id]: { epoch: 1, state: "running", route: null, load: 0 },
    [KEYS.configs + id]: { version: newUlid(Date.parse("2026-02-02")), config, imageDigest: "sha256:1", createdAt },
  });
  await cluster.claim(c, "shop", "44444444444444", "silent");
  const listed = async (path: string, token = cluster.token) => {
    const { headers, body } = await cluster.ask(a, "GET", path, undefined, as(token).headers);
    const machines = (body as MachineWire[]).filter(({ host }) => host === "c");
    return { missing: headers.get("hibernaut-hosts-missing"), machines };
  };
  // Host c has neither, so they are told from those of its own.
  expect(await listed("/v1/machines")).toEqual({ missing: null, machines: [] });

  await cluster.setUp("c", false);
  for (const path of ["/v1/machines", "/v1/apps/shop/machines"]) {
    const { missing, machines } = await listed(path);
    expect(missing).toBe("c");
    expect(machines).toMatchObject([
      { name: "silent", host_state: "unreachable", state: "created" },
      { name: "far", host_state: "unreachable", state: "running", config, created_at: createdAt },
    ]);
    expect(machines[1]).toMatchObject({ updated_at: "2026-02-02T00:00:00.000Z", private_address: "10.0.0.1" });
    expect(machines[1]?.unreachable).toMatch(/^host c is away; the state is the last that it published$/);
    expect((await listed(`${path}?state=running`)).machines).toMatchObject([{ name: "far" }]);
    expect((await listed(`${path}?metadata.team=search&state=running`)).machines).toEqual([]);
    for (const machine of machines) expect(() => Value.Assert(MachineReply, machine)).not.toThrow();
  }
  await cluster.ask(a, "POST", "/v1/apps", { app_name: "blog" });
  const other = { name: "other", scopes: ["read"], apps: ["blog"] };
  const { token } = (await cluster.ask(a, "POST", "/v1/tokens", other)).body;
  expect((await listed("/v1/machines", token)).machines).toEqual([]);
  await cluster.setUp("c", true);
});

test("a machine that another host refused, and this one created, has its end in the audit log", async () => {
  // The directory still praises host b, which drains.
  await cluster.setUp("a", { memoryMb: { total: 999, free: 200 } });
  await cluster.setUp("b", { memoryMb: { total: 99_999, free: 90_000 } });
  await cluster.setUp("c", false);
  await cluster.ask(b, "POST", "/v1/platform/drain");
  const config = { image: "app:1", guest: { memory_mb: 128 } };
  expect((await cluster.ask(a, "POST", "/v1/apps/shop/machines", { name: "late", config })).status).toBe(201);
  await cluster.setUp("c", true);
  const response = await fetch(`${a.url}/v1/audit?limit=1000`, as(cluster.token));
  const phases = lines(await response.text())
    .map((line) => JSON.parse(line) as { phase: string; target?: { name?: string } })
    .filter(({ target }) => target?.name === "late")
    .map(({ phase }) => phase);
  expect(phases.filter((phase) => phase === "end")).toHaveLength(phases.filter((phase) => phase === "begin").length);
});

test("a machine that has just come, and is not taken in yet, is not said to be destroyed", async () => {
  await cluster.claim(a, "shop", "11111111111111", "coming");
  expect(await cluster.ask(a, "GET", "/v1/apps/shop/machines/11111111111111")).toMatchObject({
    status: 503,
    body: { error: "unavailable", message: expect.stringContaining("just come") },
  });
});

test("an offer of another protocol is not an upgrade, also at another host", async () => {
  await cluster.claim(b, "shop", "22222222222222", "there");
  const asked = request(`${a.url}/v1/apps/shop/machines/22222222222222`, {
    headers: { ...as(cluster.token).headers, upgrade: "h2c", connection: "close" },
  }).end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  response.resume();
  // Host b answers, to whom the machine has only just come.
  expect([response.statusCode, response.headers["hibernaut-host"]]).toEqual([503, "b"]);
});
