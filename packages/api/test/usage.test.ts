/** Usage over HTTP. Every reply is held against the OpenAPI document. */
import { beforeEach, describe, expect, test } from "vitest";
import { runningMachine } from "../../platform/test/helpers/fake-world.ts";
import { type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
let id: string;

beforeEach(async () => {
  ({ server, call } = await testApi({}, { apps: [] }));
  id = await runningMachine(server.platform);
});

const today = new Date().toISOString().slice(0, 10);

test("usage is shown by app, machine and day", async () => {
  const byApp = await call("GET", "/v1/usage");
  expect(byApp).toMatchObject({
    status: 200,
    body: { group_by: "app", currency: null, usage: [{ app_name: "shop", machine_id: null, day: null, cost: null }] },
  });
  const byMachine = await call("GET", "/v1/usage?group_by=machine&app=shop");
  expect(byMachine.body.usage).toMatchObject([{ app_name: "shop", machine_id: id }]);
  const byDay = await call("GET", `/v1/usage?group_by=day&from=${today}`);
  expect(byDay.body.usage.at(-1)).toMatchObject({ app_name: null, wakes: { resume: 0, cold: 0 } });
  const reply = await call("GET", `/v1/apps/shop/machines/${id.slice(0, 6)}/usage?from=7d`);
  expect(reply.body).toMatchObject({ group_by: "day", total: { app_name: "shop" } });
  expect(reply.body.usage).toHaveLength(8);
});

test("a machine that is gone is found by its id, and its app by its name", async () => {
  await call("DELETE", "/v1/apps/shop?force=true");
  const path = `/v1/apps/shop/machines/${id}/usage`;
  expect(await call("GET", path)).toMatchObject({ status: 200 });
  expect((await call("GET", "/v1/usage?app=shop&group_by=machine")).body.usage).toMatchObject([{ machine_id: id }]);
  expect(await call("GET", path.replace("shop", "blog"))).toMatchObject({ status: 404, body: { error: "not_found" } });
});

test("usage is part of the metrics", async () => {
  const reply = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } });
  expect(await reply.text()).toMatch(/^hibernaut_usage_cpu_seconds_total\{app="shop"\} \d/m);
});

describe("a bad question is refused", () => {
  test.each([
    ["turned around", "from=2026-02-01&to=2026-01-01", /must be before `to`/],
    ["longer than a year", "from=2024-01-01&to=2025-06-01", /may have up to 366/],
    ["from the future", "from=2999-01-01", /`from` is in the future/],
    ["to the future", "from=2026-01-01&to=2999-01-01", /`to` is in the future/],
    ["from never", "from=yesterday", /`from` must be a date such as/],
    ["to nowhere", "to=2026-13-45", /`to` must be a date such as/],
    ["from a day that does not exist", "from=2026-02-31", /`from` must be a date such as/],
    ["from before all time", "from=999999999d", /The range has \d+ days/],
    ["with an unknown group", "group_by=week", /group_by/],
    ["with an unknown key", "form=2026-01-01", /did you mean `from`/],
  ])("%s", async (_name, query, message) => {
    const reply = await call("GET", `/v1/usage?${query}`);
    expect(reply).toMatchObject({ status: 400, body: { error: "invalid_argument" } });
    expect(reply.body.message).toMatch(message);
    if (query.startsWith("group_by")) return;
    expect((await call("GET", `/v1/apps/shop/machines/${id}/usage?${query}`)).status).toBe(400);
  });

  test("about an app or machine that nobody knows", async () => {
    expect(await call("GET", "/v1/usage?app=nothing")).toMatchObject({ status: 404, body: { error: "not_found" } });
    expect(await call("GET", "/v1/apps/shop/machines/nothing/usage")).toMatchObject({ status: 404 });
  });
});
