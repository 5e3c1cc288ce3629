/** Previews in a cluster: any host makes them, one decides when they end, and each destroys what it has. */
import { PreviewExpiry } from "@hibernaut/machines";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createToken } from "../src/tokens.ts";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";
import { as } from "./helpers.ts";

const GRACE = 1000;

let cluster: ApiHosts;
let hosts: ApiHosts["hosts"];
const ask: ApiHosts["ask"] = (...args) => cluster.ask(...args);

beforeAll(async () => {
  cluster = await startApiHosts();
  ({ hosts } = cluster);
  await ask(hosts[0], "POST", "/v1/apps", { app_name: "shop" });
});
afterAll(() => cluster.close());

/** Ends previews on a host, whose clock is an hour ahead. Looks at two moments, a grace apart, and at a third. */
function expiryOn({ host }: ApiHost) {
  const log = { info() {}, warn() {}, error() {} };
  let looks = 0;
  const expiry = new PreviewExpiry({
    ...host.shared.previewEnds,
    list: () => host.platform.apps.list(),
    graceMs: GRACE,
    log,
    now: () => Date.now() + 3_600_000,
    steady: () => looks * GRACE,
  });
  return async () => {
    await expiry.look();
    looks += 1;
    for (const each of hosts) await each.host.shared.catchUp();
  };
}

const previews = ({ host }: ApiHost) => host.platform.previews.list("shop").map(({ name }) => name);

test("a preview that was made at one host is known to all, with its token, and is renewed at another", async () => {
  const [a, b, c] = hosts;
  const { token } = await a.host.shared.write(({ tokens }) =>
    createToken(tokens, "ci", { scopes: ["deploy"], apps: [], previewsOf: ["shop"] }),
  );
  const ci = as(token).headers;
  const made = await ask(b, "PUT", "/v1/apps/shop/previews/pr-12", { ttl: 60 }, ci);
  expect(made).toMatchObject({ status: 200, body: { name: "pr-12--shop" } });
  for (const { host } of hosts) await host.shared.catchUp();
  const renewed = await ask(c, "PUT", "/v1/apps/shop/previews/pr-12", { ttl: 600 }, ci);
  for (const { host } of hosts) await host.shared.catchUp();
  for (const each of hosts) {
    const shown = await ask(each, "GET", "/v1/apps/pr-12--shop", undefined, ci);
    expect(shown.body.preview).toEqual(renewed.body.preview);
    expect((await ask(each, "GET", "/v1/apps/shop", undefined, ci)).status).toBe(404);
  }
});

test("an app gets no more previews than it may have, also if many are asked for at all hosts at the same moment", async () => {
  await ask(hosts[0], "POST", "/v1/apps", { app_name: "busy" });
  await ask(hosts[0], "PUT", "/v1/apps/busy/quota", { previews: 3 });
  for (const { host } of hosts) await host.shared.catchUp();
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const asked = Array.from({ length: 12 }, (_, at) => {
    const { host } = hosts[at % hosts.length] ?? hosts[0];
    return host.shared.write((shared) => shared.previews.put("busy", { name: `pr-${at}`, expiresAt }));
  });
  const refused = (await Promise.allSettled(asked)).filter(({ status }) => status === "rejected");
  for (const { host } of hosts) await host.shared.catchUp();
  for (const { host } of hosts) expect(host.platform.previews.list("busy")).toHaveLength(3);
  expect(refused).toHaveLength(9);
});

test("only the first host decides that its time is over, and every host destroys what it has", async () => {
  const [a, b, c] = hosts;
  const volume = { name: "data", size_gb: 1, host: "b" };
  expect((await ask(a, "POST", "/v1/apps/pr-12--shop/volumes", volume)).status).toBe(201);
  expect((await ask(a, "POST", "/v1/apps/shop/volumes", volume)).status).toBe(201);
  const [lookA, lookB, lookC] = [expiryOn(a), expiryOn(b), expiryOn(c)];
  for (let time = 0; time < 4; time += 1) for (const look of [lookB, lookC]) await look();
  expect(hosts.flatMap(previews), "the clocks of others do not count").toHaveLength(3);

  await lookA();
  await lookA();
  expect(b.host.platform.apps.get("pr-12--shop").preview).toMatchObject({ expired: true });
  const late = await ask(b, "PUT", "/v1/apps/shop/previews/pr-12", { ttl: 600 });
  expect(late).toMatchObject({ status: 409, body: { error: "aborted" } });

  await cluster.setUp("c", false);
  await lookA();
  expect(previews(a), "a host that is away may have volumes of it").toHaveLength(1);
  await cluster.setUp("c", true);
  await lookB();
  expect(b.world.store.volumes.list("pr-12--shop")).toEqual([]);
  await lookA();
  expect(hosts.flatMap(previews)).toEqual([]);
  expect(b.world.store.volumes.list("shop")).toHaveLength(1);
});

test("a host that has something left of it destroys that later, and then forgets the preview, too", {
  tags: "again",
}, async () => {
  const [a, b] = hosts;
  await ask(a, "PUT", "/v1/apps/shop/previews/pr-13", { ttl: 60 });
  const volume = { name: "data", size_gb: 1, host: "b" };
  expect((await ask(a, "POST", "/v1/apps/pr-13--shop/volumes", volume)).status).toBe(201);
  const [lookA, lookB] = [expiryOn(a), expiryOn(b)];
  for (let time = 0; time < 3; time += 1) await lookA();
  expect(previews(a)).toEqual([]);
  expect(previews(b)).toEqual(["pr-13--shop"]);
  await lookB();
  expect(b.world.store.volumes.list("pr-13--shop")).toEqual([]);
  await expect.poll(() => previews(b), { timeout: 10_000 }).toEqual([]);
});

test("previews of a project share a network, whichever hosts they are made at, and a name there is given away once", async () => {
  const [a, b, c] = hosts;
  for (const app of ["cafe-web", "cafe-db", "cafe-job"])
    await ask(a, "POST", "/v1/apps", { app_name: app, network: "cafe" });
  for (const { host } of hosts) await host.shared.catchUp();
  const put = (host: ApiHost, app: string, aliases: string[]) =>
    ask(host, "PUT", `/v1/apps/${app}/previews/pr-12`, { network: true, aliases });
  const made = await Promise.all([put(a, "cafe-web", ["web"]), put(b, "cafe-db", ["db"]), put(c, "cafe-job", ["db"])]);
  expect(made.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 200, 409]);
  for (const { host } of hosts) await host.shared.catchUp();
  for (const { host } of hosts) {
    const members = host.platform.apps.list().filter(({ network }) => network?.name === "pr-12--cafe");
    expect(members.map(({ preview }) => preview?.of)).toContain("cafe-web");
    expect(new Set(members.map(({ network }) => network?.address)).size).toBe(2);
  }
});
