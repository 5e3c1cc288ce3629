/** Previews of the apps of a network: they share one among themselves, which leads to nothing else. */
import { beforeEach, expect, test } from "vitest";
import { createToken } from "../src/tokens.ts";
import { as, testApi } from "./helpers.ts";

type Place = Awaited<ReturnType<typeof testApi>>;

let api: Place;
beforeEach(async () => {
  api = await testApi({}, { apps: ["alone"] });
  for (const [app, alias] of [
    ["shop-web", "web"],
    ["shop-db", "db"],
  ])
    await api.call("POST", "/v1/apps", { app_name: app, network: "shop", aliases: [alias] });
});

const put = (of: string, body: object, headers?: ReturnType<typeof as>) =>
  api.call("PUT", `/v1/apps/${of}/previews/pr-12`, body, headers);
const WEB = { network: true, aliases: ["web"], wakes: ["pr-12--shop-db"] };
const DB = { network: true, aliases: ["db"] };

test("previews of one name are in a network of their own, under the names that production has in its own", async () => {
  const web = await put("shop-web", WEB);
  const db = await put("shop-db", DB);
  expect(web).toMatchObject({ status: 200, body: { network: { name: "pr-12--shop", aliases: ["web"] } } });
  expect(db.body.network).toMatchObject({ name: "pr-12--shop", aliases: ["db"] });
  expect((await api.call("GET", "/v1/apps/pr-12--shop-web")).body.network.wakes).toEqual(["pr-12--shop-db"]);
  const addresses = api.server.platform.apps.list().flatMap(({ network }) => network?.address ?? []);
  expect(new Set(addresses).size).toBe(4);
  const other = await api.call("PUT", "/v1/apps/shop-web/previews/pr-13", WEB);
  expect(other.body.network.name).toBe("pr-13--shop");
});

test("a renewal changes names and wakes, or leaves them; the network stays", async () => {
  const { body: made } = await put("shop-web", WEB);
  expect((await put("shop-web", { ttl: 600 })).body.network).toMatchObject({ aliases: ["web"] });
  const changed = await put("shop-web", { network: true, aliases: ["front"] });
  expect(changed.body.network).toMatchObject({ address: made.network.address, aliases: ["front"] });
});

test.each([
  ["an app without a network", "alone", { network: true }, 412, /App alone is in no network/],
  ["names without a network", "shop-web", { aliases: ["web"] }, 400, /Add `network: true`/],
  ["a name that cannot be one", "shop-web", { network: true, aliases: ["a b"] }, 400, /cannot be an alias/],
  ["a network by name", "shop-web", { network: "shop" }, 400, /network/],
])("%s is refused, and nothing is made", async (_what, of, body, status, message) => {
  const refused = await put(of, body);
  expect(refused).toMatchObject({ status, body: { message: expect.stringMatching(message) } });
  expect(api.server.platform.previews.list(of)).toEqual([]);
});

test("a name is given away once", async () => {
  await put("shop-web", WEB);
  expect(await put("shop-db", { network: true, aliases: ["web"] })).toMatchObject({
    status: 409,
    body: { error: "already_exists", message: expect.stringContaining("`web` is app pr-12--shop-web") },
  });
});

test("a preview that was made without a network gets none, because its machines would not be in it", async () => {
  await put("shop-web", {});
  expect(await put("shop-web", WEB)).toMatchObject({
    status: 412,
    body: { message: expect.stringContaining("was made without a network") },
  });
});

test("nobody else's app comes within reach of what is tried out", async () => {
  await api.call("POST", "/v1/apps", { app_name: "bank", network: "pr-12--shop" });
  expect(await put("shop-web", WEB)).toMatchObject({
    status: 409,
    body: { message: expect.stringContaining("The network pr-12--shop has app bank") },
  });
});

test("and it comes there no later, although the previews had the network first", async () => {
  await put("shop-web", WEB);
  expect(await api.call("POST", "/v1/apps", { app_name: "bank", network: "pr-12--shop" })).toMatchObject({
    status: 409,
    body: { error: "already_exists", message: expect.stringContaining("such as pr-12--shop-web") },
  });
});

test("a token for previews gives them their place, and reaches no network besides", async () => {
  const rights = { scopes: ["deploy"] as const, apps: [], previewsOf: ["shop-web"] };
  const ci = as(createToken(api.server.tokens, "ci", rights).token);
  const made = await put("shop-web", { ...WEB, wakes: ["shop-db", "pr-12--shop-db"] }, ci);
  expect(made).toMatchObject({ status: 200, body: { network: { name: "pr-12--shop", wakes: [] } } });
  expect(await put("shop-db", DB, ci)).toMatchObject({ status: 404 });
  expect(await api.call("PATCH", "/v1/apps/pr-12--shop-web", { aliases: ["db"] }, ci)).toMatchObject({ status: 403 });
});
