/** Fly's port of one host shows what all hosts of a cluster have. */
import { RequestPlaces } from "@hibernaut/connections";
import { expect, onTestFinished, test } from "vitest";
import { verifyToken } from "../../api/src/tokens.ts";
import { askWithin } from "../../api/src/within.ts";
import { startApiHosts } from "../../api/test/cluster-hosts.ts";
import { budgetOf } from "../../platform/test/helpers/connections.ts";
import { buildFly } from "../src/server.ts";

test("lists, volumes and secrets are those of all hosts", async () => {
  const cluster = await startApiHosts();
  onTestFinished(() => cluster.close());
  const [here, there] = cluster.hosts;
  if (here === undefined || there === undefined) throw new Error("a cluster has several hosts");
  await cluster.ask(here, "POST", "/v1/apps", { app_name: "shop" });
  const ids = [await cluster.make(here, "shop", "own"), await cluster.make(there, "shop", "web")].toSorted();
  const { body: volume } = await cluster.ask(there, "POST", "/v1/apps/shop/volumes", {
    name: "data",
    host: there.host.name,
  });
  const fly = await buildFly({
    ask: (request) => askWithin(here.api, request),
    grantOf: (token) => verifyToken(here.tokens, token),
    log: { info() {}, warn() {} },
    places: new RequestPlaces(budgetOf()),
  });
  onTestFinished(() => fly.close());
  const call = async (method: "GET" | "POST" | "DELETE", url: string, body?: object) => {
    const headers = { authorization: `Bearer ${cluster.token}`, ...(body && { "content-type": "application/json" }) };
    const answer = await fly.inject({ method, url, headers, ...(body && { payload: JSON.stringify(body) }) });
    return { status: answer.statusCode, body: answer.json<unknown>() };
  };
  const machines = (await call("GET", "/v1/apps/shop/machines")).body as { id: string }[];
  expect(machines.map(({ id }) => id).toSorted()).toEqual(ids);
  expect((await call("GET", "/v1/orgs/personal/machines")).body).toMatchObject({ machines: [{}, {}] });
  expect((await call("GET", "/v1/apps/shop/volumes")).body).toMatchObject([{ id: (volume as { id: string }).id }]);
  expect(await call("POST", "/v1/apps/shop/secrets", { values: { PIN: "1234" } })).toMatchObject({ status: 200 });
  expect(await call("DELETE", "/v1/apps/shop/secrets/PIN")).toMatchObject({ status: 200 });
});
