/** Previews over the API, as a CI job with a token of its own uses them, and as someone else would like to. */
import { expect, test } from "vitest";
import { createToken, rotateToken } from "../src/tokens.ts";
import { as, testApi } from "./helpers.ts";

const PREVIEWS = "/v1/apps/shop/previews";
const PR_12 = `${PREVIEWS}/pr-12`;
const MACHINE = { config: { image: "x", mounts: [{ volume: "data", path: "/data" }] } };

/** A platform with the apps `shop`, which has data and a secret, and `bank`. */
async function place() {
  const { server, call } = await testApi({}, { apps: ["shop", "bank"] });
  const made = await call("POST", "/v1/apps/shop/machines", MACHINE);
  await server.platform.machines.wait("shop", made.body.id, ["running"], { timeoutMs: 5000 });
  await call("POST", "/v1/apps/shop/secrets", { secrets: { API_KEY: "real" } });
  const [volume] = server.platform.volumes.list("shop");
  const rights = { scopes: ["deploy"] as const, apps: [], previewsOf: ["shop"] };
  const { record, token } = createToken(server.tokens, "pull-requests", rights);
  return { server, call, machine: made.body.id as string, volume: volume?.id ?? "", record, ci: as(token) };
}

test("a CI job makes a preview, deploys to it, renews it and destroys it, with a token for previews", async () => {
  const { server, call, ci } = await place();
  const made = await call("PUT", PR_12, { ttl: 3600 }, ci);
  expect(made).toMatchObject({ status: 200, body: { name: "pr-12--shop", preview: { of: "shop", name: "pr-12" } } });
  const end = (body: { preview: { expires_at: string } }) => Date.parse(body.preview.expires_at) - Date.now();
  expect(end(made.body)).toBeGreaterThan(3_500_000);
  expect(await call("POST", "/v1/apps/pr-12--shop/machines", MACHINE, ci)).toMatchObject({ status: 201 });
  expect(await call("POST", "/v1/apps/pr-12--shop/releases", { image: "app:1" }, ci)).toMatchObject({ status: 201 });
  expect(await call("POST", "/v1/apps/pr-12--shop/secrets", { secrets: { A: "1" } }, ci)).toMatchObject({
    status: 200,
  });
  expect((await call("GET", "/v1/apps", undefined, ci)).body).toMatchObject({ apps: [{ name: "pr-12--shop" }] });
  expect((await call("GET", PREVIEWS, undefined, ci)).body).toMatchObject({ previews: [{ machine_count: 1 }] });

  const renewed = await call("PUT", PR_12, { ttl: 7200 }, ci);
  expect(end(renewed.body)).toBeGreaterThan(7_100_000);
  expect(renewed.body.created_at).toBe(made.body.created_at);

  expect(await call("DELETE", PR_12, undefined, ci)).toMatchObject({ status: 200 });
  expect(server.platform.apps.list().map(({ name }) => name)).toEqual(["bank", "shop"]);
  expect(await call("DELETE", PR_12, undefined, ci)).toMatchObject({ status: 404, body: { error: "not_found" } });
  expect(server.platform.volumes.list("shop")).toHaveLength(1);
});

test("its token reaches neither production nor another app, and no app that only looks like a preview", async () => {
  const { server, call, machine, volume, ci } = await place();
  await call("PUT", PR_12, {}, ci);
  server.platform.apps.create("pr-13--shop");
  server.platform.previews.put("bank", { name: "pr-14", expiresAt: "2099-01-01T00:00:00.000Z" });
  for (const app of ["shop", "bank", "pr-13--shop", "pr-14--bank"])
    for (const [method, path, body] of [
      ["GET", ""],
      ["PATCH", "", { status_page: true }],
      ["DELETE", "?force=true"],
      ["GET", "/secrets"],
      ["POST", "/secrets", { secrets: { A: "1" } }],
      ["GET", "/logs"],
      ["GET", "/volumes"],
      ["GET", "/templates"],
      ["POST", "/machines", MACHINE],
      ["DELETE", `/machines/${machine}?force=true`],
    ] as const) {
      const { status, body: reply } = await call(method, `/v1/apps/${app}${path}`, body, ci);
      expect(status, `${method} ${app}${path} ${JSON.stringify(reply)}`).toBe(404);
    }
  for (const [method, path, body] of [
    ["PUT", "/v1/apps/bank/previews/pr-12"],
    ["DELETE", "/v1/apps/bank/previews/pr-14"],
    ["GET", "/v1/apps/bank/previews"],
    // Production's data and secrets.
    ["POST", "/v1/apps/pr-12--shop/volumes", { name: "data", source_volume_id: volume }],
    ["POST", "/v1/apps/pr-12--shop/machines", { config: { image: "x", mounts: [{ volume, path: "/data" }] } }],
    ["GET", `/v1/apps/pr-12--shop/machines/${machine}`],
  ] as const)
    expect(await call(method, path, body, ci), `${method} ${path}`).toMatchObject({ status: 404 });
  for (const [method, path, body] of [
    ["PUT", PR_12, { copy_secrets: true }],
    ["POST", "/v1/apps", { app_name: "pr-15--shop" }],
    ["PATCH", "/v1/apps/pr-12--shop", { aliases: ["shop"] }],
    ["DELETE", "/v1/apps/pr-12--shop?force=true"],
    ["PUT", "/v1/apps/pr-12--shop/quota", { machines: 0 }],
    ["POST", "/v1/tokens", { name: "more" }],
  ] as const)
    expect(await call(method, path, body, ci), `${method} ${path}`).toMatchObject({ status: 403 });
  expect(await call("PUT", `${PREVIEWS}/pr-13`, {}, ci)).toMatchObject({
    status: 409,
    body: { error: "already_exists" },
  });
  expect(server.platform.machines.get("shop", machine).record.state).toBe("running");
});

test("the token takes no TCP port from production, which would find it taken at its next deploy", async () => {
  const { call, ci } = await place();
  await call("PUT", PR_12, {}, ci);
  const listening = (port: object) => ({
    config: { image: "x", services: [{ protocol: "tcp", internal_port: 5432, ports: [port] }] },
  });
  const machines = "/v1/apps/pr-12--shop/machines";
  expect(await call("POST", machines, listening({ port: 5432 }), ci)).toMatchObject({
    status: 403,
    body: { error: "permission_denied", message: expect.stringContaining("it would belong to the preview alone") },
  });
  expect(await call("POST", "/v1/apps/shop/machines", listening({ port: 5432 }))).toMatchObject({ status: 201 });
  const shared = listening({ port: 6543, handlers: ["pg_tls"] });
  expect(await call("POST", machines, shared, ci)).toMatchObject({ status: 201 });
  // What someone with more rights gave a preview, it keeps.
  const { body: made } = await call("POST", machines, listening({ port: 7000 }));
  expect(await call("POST", `${machines}/${made.id}`, listening({ port: 7000 }), ci)).toMatchObject({ status: 200 });
});

test("the token leaves others their webhooks, of which a platform has a hundred", async () => {
  const { call, server, ci } = await place();
  const url = "https://example.com/hook";
  for (let round = 0; round < 10; round += 1) {
    await call("PUT", PR_12, {}, ci);
    for (let each = 0; each < 10; each += 1)
      expect(await call("POST", "/v1/webhooks", { url, apps: ["pr-12--shop"] }, ci)).toMatchObject({
        status: 403,
        body: { error: "permission_denied", message: expect.stringContaining("outlive the previews") },
      });
    await call("DELETE", PR_12, undefined, ci);
  }
  const bank = as(createToken(server.tokens, "bank", { scopes: ["deploy"], apps: ["bank"] }).token);
  expect(await call("POST", "/v1/webhooks", { url, apps: ["bank"] }, bank)).toMatchObject({ status: 201 });
  // One that someone else made for a preview, it sees and tests as any other does.
  await call("PUT", PR_12, {}, ci);
  await call("POST", "/v1/webhooks", { url, apps: ["pr-12--shop"] });
  expect((await call("GET", "/v1/webhooks", undefined, ci)).body.webhooks).toHaveLength(1);
});

test("the token's rights are those of its scope, also for the previews that are made later", async () => {
  const { server, call, record } = await place();
  const { token } = createToken(server.tokens, "eyes", { scopes: ["read"], apps: [], previewsOf: ["shop"] });
  const refused = await call("PUT", PR_12, {}, as(token));
  expect(refused).toMatchObject({ status: 403, body: { details: { missing_scope: "deploy" } } });
  expect(refused.body.message).toContain("hibernaut tokens create <name> --scope deploy --app shop --previews");
  await call("PUT", PR_12);
  expect(await call("GET", "/v1/apps/pr-12--shop", undefined, as(token))).toMatchObject({ status: 200 });
  const next = rotateToken(server.tokens, record.id, { overlapMs: 1000 });
  expect(await call("GET", "/v1/apps/pr-12--shop", undefined, as(next.token))).toMatchObject({ status: 200 });
  const listed = (await call("GET", "/v1/tokens")).body.tokens;
  expect(listed.at(-1)).toMatchObject({ previews_of: ["shop"], apps: ["pr-12--shop"] });
  // When production goes, the token reaches nothing, and a later app of the name is another one.
  await call("DELETE", "/v1/apps/shop?force=true");
  await call("POST", "/v1/apps", { app_name: "shop" });
  for (const path of ["/v1/apps/pr-12--shop", PREVIEWS])
    expect(await call("GET", path, undefined, as(next.token)), path).toMatchObject({ status: 404 });
});

test("a token for the app itself does not make previews, and the refusal names the one that does", async () => {
  const { server, call } = await place();
  const { token } = createToken(server.tokens, "shop", { scopes: ["admin"], apps: ["shop"] });
  const refused = await call("PUT", PR_12, {}, as(token));
  expect(refused).toMatchObject({ status: 403, body: { error: "permission_denied" } });
  expect(refused.body.message).toContain("--scope deploy --app shop --previews");
  await call("PUT", PR_12);
  expect(await call("GET", "/v1/apps/pr-12--shop", undefined, as(token))).toMatchObject({ status: 404 });
});

test("a token is made for previews of apps that are named, and is not a key for E2B's clients", async () => {
  const { call } = await place();
  const made = await call("POST", "/v1/tokens", { name: "ci", scopes: ["deploy"], apps: ["shop"], previews: true });
  expect(made).toMatchObject({ status: 201, body: { apps: [], previews_of: ["shop"] } });
  for (const body of [{ previews: true }, { previews: true, apps: ["shop"], e2b: true }])
    expect(await call("POST", "/v1/tokens", { name: "ci", ...body })).toMatchObject({ status: 400 });
  const unknown = { name: "ci", apps: ["none"], previews: true };
  expect(await call("POST", "/v1/tokens", unknown)).toMatchObject({ status: 404 });
});

test.each([
  ["pr-12", { ttl: 0 }],
  ["pr-12", { ttl: -1 }],
  ["pr-12", { ttl: 59 }],
  ["pr-12", { ttl: 1e12 }],
  ["pr-12", { ttl: "soon" }],
  ["pr-12", { volume: "data" }],
  ["a--b", {}],
  ["xn", {}],
  ["PR", {}],
  ["%00", {}],
  ["x".repeat(60), {}],
])("the preview %s with %j is refused", async (name, body) => {
  const { server, call } = await testApi();
  expect(await call("PUT", `${PREVIEWS}/${name}`, body)).toMatchObject({ status: 400 });
  expect(server.platform.previews.list("shop")).toEqual([]);
});

test("volumes and secrets of production are copied for someone who may have both, while production sleeps", async () => {
  const { server, call, machine, volume } = await place();
  await call("PUT", PR_12, { copy_secrets: true });
  const [secret] = (await call("GET", "/v1/apps/pr-12--shop/secrets")).body.secrets;
  expect(secret).toMatchObject({ name: "API_KEY" });
  const copy = { name: "data", source_volume_id: volume };
  const running = await call("POST", "/v1/apps/pr-12--shop/volumes", copy);
  expect(running).toMatchObject({ status: 412, body: { error: "failed_precondition" } });
  expect(running.body.message).toMatch(/cannot be copied: its machine \w+ is running, .* Suspend or stop the machine/);
  expect(server.platform.volumes.list("pr-12--shop")).toEqual([]);
  server.platform.machines.stop("shop", machine);
  await server.platform.machines.wait("shop", machine, ["stopped"], { timeoutMs: 5000 });
  const made = await call("POST", "/v1/apps/pr-12--shop/volumes", copy);
  expect(made).toMatchObject({ status: 201, body: { name: "data", size_gb: 1, attached_machine_id: null } });
  // Of another app, not even by someone who reaches both.
  const foreign = await call("POST", "/v1/apps/bank/volumes", copy);
  expect(foreign).toMatchObject({ status: 404, body: { error: "not_found" } });
  const both = { ...copy, snapshot_id: "vs_0000000000000000" };
  expect(await call("POST", "/v1/apps/pr-12--shop/volumes", both)).toMatchObject({ status: 400 });
});
