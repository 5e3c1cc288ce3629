/** `/v1/webhooks`: who may have what sent where, and what nobody gets to see. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HibernautClient } from "@hibernaut/client";
import type { Scope } from "@hibernaut/domain/scopes";
import { Registry } from "prom-client";
import { Webhook } from "standardwebhooks";
import { beforeEach, expect, test } from "vitest";
import { openReceiver, type Received, type Receiver, soon, withStatus } from "../../events/test/webhooks/receiver.ts";
import { openRig } from "../../events/test/webhooks/rig.ts";
import { createToken } from "../src/tokens.ts";
import { webhookMetrics } from "../src/webhook-metrics.ts";
import { startApi, type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let server: TestApi;
let client: HibernautClient;
let receiver: Receiver;
let call: Call;
beforeEach(async () => {
  receiver = await openReceiver();
  ({ server, call } = await testApi({}, { apps: ["shop", "bank"] }));
  client = as(server.token);
});

function as(token: string): HibernautClient {
  return new HibernautClient({ apiUrl: server.url, token });
}
function limited(scopes: Scope[], apps: string[] | null): HibernautClient {
  return as(createToken(server.tokens, "limited", { scopes, apps }).token);
}

test("a machine falls asleep and wakes, and the receiver hears of it, signed", async () => {
  const { secret, id } = await client.createWebhook({ url: receiver.url, events: ["machine"], apps: ["shop"] });
  const { machine_id: machine } = await client.createMachine("shop", { config: { image: "app" } });
  await client.waitForMachine("shop", machine, { state: "running" });
  await client.suspendMachine("shop", machine);
  await client.waitForMachine("shop", machine, { state: "suspended" });
  await client.createMachine("bank", { config: { image: "app" } });
  const accepted = await receiver.took(5);
  expect(accepted.map(({ type }) => type.replace("machine.", ""))).toEqual([
    ...["created", "starting", "running", "suspending", "suspended"],
  ]);
  for (const { body, headers } of accepted) new Webhook(secret).verify(body, headers);
  // The same as in the stream.
  const told = await Array.fromAsync(client.readEvents({ app: "shop", type: "machine", since: 0 }));
  expect(accepted.map(({ data }) => data)).toEqual(
    told.map((event) => {
      if (!("sequence" in event)) return event;
      const { sequence, app_name, machine_id, data } = event;
      return { ...data, sequence, app_name, machine_id };
    }),
  );
  await soon(async () => {
    const deliveries = await client.listWebhookDeliveries(id);
    expect(deliveries.map(({ state, type }) => `${type} ${state}`)[0]).toBe("machine.suspended delivered");
    expect(deliveries).toHaveLength(5);
  });
  expect(await client.listWebhookDeliveries(id, { limit: 2 })).toHaveLength(2);
});

test("every route answers as the document says, and the secret is shown once", async () => {
  const body = { url: receiver.url, events: ["machine.failed"], description: "alerts" };
  const made = await call("POST", "/v1/webhooks", body);
  expect(made).toMatchObject({ status: 201, body: { ...body, apps: null, disabled_at: null } });
  const { id, secret } = made.body;
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const path = `/v1/webhooks/${id}`;
  const tested = await call("POST", `${path}/test`);
  expect(tested.body).toMatchObject({ outcome: "delivered", status: 200, error: null });
  expect(receiver.received[0]).toMatchObject({ type: "webhook.test", data: { webhook_id: id } });
  const others = [
    await call("GET", "/v1/webhooks"),
    await call("GET", path),
    await call("PATCH", path, { enabled: false }),
    await call("PATCH", path, { enabled: true, skip: true, apps: ["shop", "shop"] }),
    await call("GET", `${path}/deliveries`),
  ];
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(JSON.stringify(others)).not.toContain(secret);
  expect(others[2]?.body).toMatchObject({ disabled_reason: "Someone disabled it." });
  expect(others[3]?.body).toMatchObject({ disabled_at: null, apps: ["shop"] });
  const rotated = await call("POST", `${path}/rotate`, { overlap: 60 });
  expect(rotated).toMatchObject({ status: 201, body: { former_secret_until: expect.any(String) } });
  expect(rotated.body.secret).not.toBe(secret);
  expect((await call("DELETE", path)).body).toEqual({ ok: true });
  expect((await call("GET", path)).status).toBe(404);
  const types = await Array.fromAsync(client.readEvents({ type: "webhook", since: 0 }), ({ type }) => type);
  const end = ["changed", "disabled", "disabled", "enabled", "changed", "removed"];
  expect(types.map((type) => type.replace("webhook.", ""))).toEqual(
    expect.arrayContaining(["created", ...new Set(end)]),
  );
});

test.each([
  [{ url: "nonsense" }, /not a valid https address/],
  [{ url: "https://example.com/", events: ["Machine!"] }, /events/],
  [{ url: "https://example.com/", events: ["machines.running"] }, /`machines\.running` is not a type of event/],
  [{ url: "https://example.com/", apps: [] }, /apps/],
  [{ url: "https://example.com/", more: 1 }, /more/],
])("%j is refused", async (body, why) => {
  const { status, body: reply } = await call("POST", "/v1/webhooks", body);
  expect(status).toBe(400);
  expect(reply.message).toMatch(why);
});

test("an app that does not exist, and a hundred and first webhook, are refused", async () => {
  await expect(client.createWebhook({ url: receiver.url, apps: ["none"] })).rejects.toThrow(/does not exist: none/);
  const { id } = await client.createWebhook({ url: receiver.url });
  await expect(client.updateWebhook(id, { apps: ["none"] })).rejects.toThrow(/does not exist: none/);
  await expect(client.updateWebhook(id, { skip: true })).rejects.toThrow(/`skip` needs/);
  for (let count = 1; count < 100; count += 1) await client.createWebhook({ url: receiver.url, events: ["secret"] });
  await expect(client.createWebhook({ url: receiver.url })).rejects.toThrow(/already has 100 webhooks/);
});

test.each([
  ["URL", { url: "nonsense" }, "invalid_argument"],
  ["type", { events: ["machines"] }, "invalid_argument"],
  ["app", { url: "http://127.0.0.1:1/", apps: ["none"] }, "not_found"],
])("a change with a wrong %s leaves the webhook as it was", async (_, wrong, code) => {
  const before = await client.createWebhook({ url: receiver.url, events: ["app"] });
  for (const more of [{ enabled: false }, { enabled: true, skip: true }])
    await expect(client.updateWebhook(before.id, { ...wrong, ...more })).rejects.toMatchObject({ code });
  expect(before).toMatchObject(await client.getWebhook(before.id));
  await client.createApp("third");
  await receiver.took(1);
});

test("a new URL gets nothing of what is skipped", async () => {
  const { id } = await client.createWebhook({ url: receiver.url, events: ["app"] });
  receiver.answer = withStatus(500);
  await client.createApp("third");
  await receiver.has(1);
  const next = await openReceiver();
  const changed = await client.updateWebhook(id, { url: next.url, enabled: true, skip: true });
  expect(changed).toMatchObject({ url: next.url, disabled_at: null });
  await client.createApp("fourth");
  await next.took(1);
  expect(next.received.map(({ data }) => data.app_name)).toEqual(["fourth"]);
});

test("an app has up to ten webhooks, so that who may deploy it leaves room for others", async () => {
  const both = limited(["deploy"], ["shop", "bank"]);
  const first = await both.createWebhook({ url: receiver.url, apps: ["shop"] });
  for (let count = 1; count < 10; count += 1) await both.createWebhook({ url: receiver.url, apps: ["shop"] });
  const full = { code: "failed_precondition", message: expect.stringMatching(/app shop already has 10 webhooks/) };
  await expect(both.createWebhook({ url: receiver.url, apps: ["bank", "shop"] })).rejects.toMatchObject(full);
  const other = await both.createWebhook({ url: receiver.url, apps: ["bank"] });
  await expect(both.updateWebhook(other.id, { apps: ["shop"] })).rejects.toMatchObject(full);
  // One of the ten keeps its place, and gives it up.
  await both.updateWebhook(first.id, { apps: ["shop", "bank"] });
  await both.updateWebhook(first.id, { apps: ["bank"] });
  await both.updateWebhook(other.id, { apps: ["shop"] });
  // Those of an app that is gone are in nobody's way.
  await client.destroyApp("shop");
  await client.createApp("shop");
  await limited(["deploy"], ["shop"]).createWebhook({ url: receiver.url, apps: ["shop"] });
});

test("by default, a webhook leads neither to this host nor to where nothing is encrypted", async () => {
  const rig = await openRig({ settings: { webhookPrivateAddresses: "refuse", webhookHttp: "refuse" } });
  const strict = await startApi({ webhooks: rig.webhooks });
  const user = new HibernautClient({ apiUrl: strict.url, token: strict.token });
  await expect(user.createWebhook({ url: "http://example.com/" })).rejects.toThrow(/HIBERNAUT_WEBHOOK_HTTP/);
  await expect(user.createWebhook({ url: "https://127.0.0.1/" })).rejects.toThrow(/private network.*Use a public/);
  await strict.close();
});

test("a token that is limited to an app manages the webhooks of that app only", async () => {
  const shop = limited(["deploy"], ["shop"]);
  const own = await shop.createWebhook({ url: receiver.url, apps: ["shop"] });
  const foreign = await client.createWebhook({ url: receiver.url, apps: ["bank"] });
  const mixed = await client.createWebhook({ url: receiver.url, apps: ["shop", "bank"] });
  const all = await client.createWebhook({ url: receiver.url });
  expect((await shop.listWebhooks()).map(({ id }) => id)).toEqual([own.id]);
  for (const { id } of [foreign, mixed, all]) {
    for (const attempt of [
      () => shop.getWebhook(id),
      () => shop.updateWebhook(id, { enabled: false }),
      () => shop.removeWebhook(id),
      () => shop.testWebhook(id),
      () => shop.rotateWebhook(id),
      () => shop.listWebhookDeliveries(id),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: "not_found", message: expect.stringContaining(id) });
  }
  await expect(shop.createWebhook({ url: receiver.url })).rejects.toMatchObject({ code: "permission_denied" });
  await expect(shop.createWebhook({ url: receiver.url, apps: ["bank"] })).rejects.toMatchObject({ code: "not_found" });
  await expect(shop.updateWebhook(own.id, { apps: null })).rejects.toMatchObject({ code: "permission_denied" });
  await expect(shop.updateWebhook(own.id, { apps: ["shop", "bank"] })).rejects.toMatchObject({ code: "not_found" });
  // Everything of the platform takes admin, also without a limit.
  const deploy = limited(["deploy"], null);
  await expect(deploy.createWebhook({ url: receiver.url })).rejects.toThrow(/scope `admin` for all apps/);
  expect((await deploy.listWebhooks()).map(({ id }) => id)).toEqual([own.id, foreign.id, mixed.id]);
  await deploy.createWebhook({ url: receiver.url, apps: ["bank"] });
  await expect(limited(["read", "exec"], null).listWebhooks()).rejects.toMatchObject({ code: "permission_denied" });
  // An app that is gone takes nobody's rights along.
  await client.destroyApp("shop");
  await client.createApp("shop");
  expect(await limited(["deploy"], ["shop"]).listWebhooks()).toEqual([]);
  expect((await client.getWebhook(own.id)).apps).toEqual([]);
  // Nor does what is left of a webhook show what happened to an app that is gone.
  expect((await client.getWebhook(mixed.id)).apps).toEqual(["bank"]);
  const bank = limited(["deploy"], ["bank"]);
  await expect(bank.listWebhookDeliveries(mixed.id)).rejects.toMatchObject({ code: "not_found" });
});

test("an app that is taken from a webhook leaves nothing in its queue and its log", async () => {
  const { id } = await client.createWebhook({ url: receiver.url, apps: ["shop", "bank"] });
  await client.addHostname("shop", "shop.example.com");
  await client.addHostname("bank", "bank.example.com");
  await soon(async () => expect(await client.listWebhookDeliveries(id)).toHaveLength(2));
  await client.updateWebhook(id, { apps: ["bank"] });
  const bank = limited(["deploy"], ["bank"]);
  expect((await bank.listWebhookDeliveries(id)).map(({ app_name: app }) => app)).toEqual(["bank"]);
});

test("what a URL has besides its host is in no event, no log and no metric, and its password in no reply", async () => {
  const url = receiver.url.replace("//", "//user:pass-word@") + "/T0KEN";
  const { id, url: shown } = await client.createWebhook({ url, events: ["app"] });
  expect(shown).toBe(url.replace("pass-word", "..."));
  await client.createApp("third");
  const [{ headers }] = (await receiver.took(1)) as [Received];
  expect(headers["authorization"]).toBe(`Basic ${Buffer.from("user:pass-word").toString("base64")}`);
  await client.updateWebhook(id, { enabled: false });
  const events = await Array.fromAsync(client.readEvents({ since: 0 }));
  const folder = join(server.world.folder, "audit");
  const audit = readdirSync(folder)
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("");
  const registry = new Registry();
  webhookMetrics(registry, { list: () => [], counts: { attempts: { delivered: 1 } as never, waiting: 0 } });
  expect(audit).toContain(`"url":"${new URL(receiver.url).origin}"`);
  for (const text of [JSON.stringify(events), audit, JSON.stringify(server.logged), await registry.metrics()])
    expect(text).not.toMatch(/pass-word|T0KEN/);
});

test("the metrics count attempts and webhooks, and name none", async () => {
  const rig = await openRig();
  const registry = new Registry();
  webhookMetrics(registry, rig.webhooks);
  const { webhook } = rig.webhooks.create({ url: rig.receiver.url, description: "", events: [], apps: null });
  rig.happen("one");
  await soon(() => expect(rig.log()[0]?.state).toBe("delivered"));
  await rig.webhooks.disable(webhook.id);
  const text = await registry.metrics();
  expect(text).toContain('hibernaut_webhook_attempts_total{outcome="delivered"} 1');
  expect(text).toContain('hibernaut_webhooks{state="disabled"} 1');
  expect(text).toContain("hibernaut_webhook_deliveries_waiting 0");
  expect(text).not.toContain(webhook.id);
});
