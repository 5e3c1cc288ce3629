/** Who may put an app into a network, and what it is called there. */
import { expect, test } from "vitest";
import { createToken } from "../src/tokens.ts";
import { as, testApi } from "./helpers.ts";

test("an app keeps its network and its address; its aliases change, and are its own there", async () => {
  const { call } = await testApi();
  const create = (app_name: string, more: object) => call("POST", "/v1/apps", { app_name, ...more });
  const { body: db } = await create("cafe-db", { network: "cafe", aliases: ["DB"] });
  expect(db.network).toEqual({
    name: "cafe",
    address: expect.stringMatching(/^198\.1[89]\./),
    aliases: ["db"],
    wakes: [],
  });
  expect((await call("GET", "/v1/apps/shop")).body.network).toBeUndefined();
  expect(await create("cafe-web", { network: "cafe", aliases: ["db"] })).toMatchObject({
    status: 409,
    body: { error: "already_exists", message: expect.stringContaining("is app cafe-db") },
  });
  expect(await create("other-db", { network: "other", aliases: ["db"] })).toMatchObject({ status: 201 });
  expect(await create("bad", { aliases: ["db"] })).toMatchObject({ status: 400, body: { error: "invalid_argument" } });
  expect(await create("bad", { network: "No/Such" })).toMatchObject({ status: 400 });
  const changed = await call("PATCH", "/v1/apps/cafe-db", { aliases: ["store"] });
  expect(changed.body.network).toEqual({ ...db.network, aliases: ["store"] });
  expect(await call("PATCH", "/v1/apps/shop", { aliases: ["x"] })).toMatchObject({
    status: 412,
    body: { error: "failed_precondition" },
  });
});

test("a token that is limited to apps joins no network, and takes no name in the one of its app", async () => {
  const { call, server } = await testApi();
  await call("POST", "/v1/apps", { app_name: "cafe-web", network: "cafe" });
  const limited = as(createToken(server.tokens, "ci", { scopes: ["deploy"], apps: ["cafe-web"] }).token);
  for (const [method, path, body] of [
    ["POST", "/v1/apps", { app_name: "mine", network: "cafe" }],
    ["PATCH", "/v1/apps/cafe-web", { aliases: ["db"] }],
  ] as const)
    expect(await call(method, path, body, limited)).toMatchObject({
      status: 403,
      body: { error: "permission_denied" },
    });
  expect(await call("PATCH", "/v1/apps/cafe-web", { status_page: true }, limited)).toMatchObject({ status: 200 });
});

test("a token that is limited to apps learns no other names of the network from what its app wakes", async () => {
  const { call, server } = await testApi();
  await call("POST", "/v1/apps", { app_name: "cafe-web", network: "cafe", wakes: ["cafe-db", "cafe-mail"] });
  await call("POST", "/v1/apps", { app_name: "cafe-db", network: "cafe" });
  const apps = ["cafe-web", "cafe-db"];
  const limited = as(createToken(server.tokens, "ci", { scopes: ["read"], apps }).token);
  expect((await call("GET", "/v1/apps/cafe-web", undefined, limited)).body.network.wakes).toEqual(["cafe-db"]);
  const listed = (await call("GET", "/v1/apps", undefined, limited)).body.apps;
  expect(listed).toMatchObject([{ name: "cafe-db" }, { network: { wakes: ["cafe-db"] } }]);
  expect((await call("GET", "/v1/apps/cafe-web")).body.network.wakes).toEqual(["cafe-db", "cafe-mail"]);
});
